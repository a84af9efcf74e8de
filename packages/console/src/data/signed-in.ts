import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { ApiError } from "../../../client/src/errors.ts";
import type { Connect } from "./connection.ts";
import type { Session } from "./session.ts";

/** What every screen after the sign-in shares. */
export interface SignedIn {
  connect: Connect;
  session: Session;
  /** The address of the API, with its stage. */
  apiUrl: string;
  /** Whether deployment events can be sent from the page: only in a local run. */
  canSendEvents: boolean;
  /** Shows a short message, and reads it to screen readers. */
  announce(message: string): void;
  /** @param reason why the API rejects the credential; absent if the user signs out */
  signOut(reason?: ApiError): void;
}

export const SignedInContext = createContext<SignedIn | undefined>(undefined);

export function useSignedIn(): SignedIn {
  const signedIn = useContext(SignedInContext);
  if (!signedIn) throw new Error("useSignedIn requires SignedInContext");
  return signedIn;
}
