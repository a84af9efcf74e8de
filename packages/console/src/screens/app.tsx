import { options } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { escaped, replaceUnseen } from "../../../../functions/foundation/schema/unseen-text.ts";
import type { ApiError } from "../../../client/src/errors.ts";
import { connectionTo } from "../data/connection.ts";
import { moveInList } from "../data/list-keys.ts";
import { useOutage } from "../data/outage.ts";
import { type Route, routeOf } from "../data/route.ts";
import { clearSession, drafts, type Session, storedSession, storeSession } from "../data/session.ts";
import { SignedInContext } from "../data/signed-in.ts";
import { Countdown, ErrorMessage, Heading, updateTitle } from "../parts/components.tsx";
import { lazy } from "../parts/lazy.tsx";
import { useLoaded } from "../parts/use-loaded.ts";
import { useNow } from "../parts/use-now.ts";
import { Projects, ProjectsContext } from "./projects.tsx";
import { SignIn } from "./sign-in.tsx";

const ProjectScreen = lazy(async () => (await import("./project.tsx")).ProjectScreen);
const WebhookScreen = lazy(async () => (await import("./webhook.tsx")).WebhookScreen);
const DeviceSignIn = lazy(async () => (await import("./device.tsx")).DeviceSignIn);
const Keys = lazy(async () => (await import("./keys.tsx")).Keys);
const Audit = lazy(async () => (await import("./audit.tsx")).Audit);
const Access = lazy(async () => (await import("./access.tsx")).Access);

const escapedInLines = (found: string): string => (/[\r\n\t]/.test(found) ? found : escaped(found));

// All text of the page passes here. Most of it was written by others, and two names may differ in what a reader does not see.
options.vnode = (vnode: { props: unknown }) => {
  if (typeof vnode.props === "string") vnode.props = replaceUnseen(vnode.props, escapedInLines);
};

interface AppProps {
  apiUrl: string;
  canSendEvents: boolean;
  /** Prints a link that signs in; absent = not a local run. */
  signInCommand?: string | undefined;
}

export function App({ apiUrl, canSendEvents, signInCommand }: AppProps) {
  const [session, setSession] = useState(storedSession);
  const lastUser = useRef(session?.user);
  if (session) lastUser.current = session.user;
  const [endReason, setEndReason] = useState<ApiError>();
  const [announcement, announce] = useAnnouncement();

  const signOut = useCallback((reason?: ApiError) => {
    clearSession();
    // A user who signs in again finds the form as it was. Other requests that fail now find it closed.
    if (reason === undefined || drafts.open.size > 0) drafts.kept = new Map(reason && drafts.open);
    setSession(undefined);
    setEndReason(reason);
  }, []);

  const connectWith = useCallback(
    ({ token }: Session) => {
      const onWait = (seconds: number) =>
        announce(`The service is busy. Retrying in ${Math.ceil(seconds)} s.`, seconds * 1000);
      return connectionTo({ baseUrl: apiUrl, token, onWait });
    },
    [apiUrl, announce],
  );

  const signedIn = useMemo(
    () => session && { connect: connectWith(session), session, apiUrl, canSendEvents, announce, signOut },
    [session, connectWith, apiUrl, canSendEvents, announce, signOut],
  );

  return (
    <>
      {signedIn ? (
        <SignedInContext.Provider value={signedIn}>
          <Layout session={signedIn.session} onSignOut={() => signOut()} />
        </SignedInContext.Provider>
      ) : (
        <SignIn
          reason={endReason}
          command={signInCommand}
          check={(candidate) => connectWith(candidate)().listProjects()}
          onSignIn={(accepted) => {
            if (accepted.user === undefined || accepted.user !== lastUser.current) drafts.kept.clear();
            storeSession(accepted);
            setSession(accepted);
          }}
        />
      )}
      <OfflineBanner />
      <div class="announcement" role="status" aria-live="polite">
        {announcement && <p>{announcement}</p>}
      </div>
    </>
  );
}

const ANNOUNCEMENT_MS = 4_000;

function useAnnouncement(): [string, (text: string, durationMs?: number) => void] {
  const [announcement, setAnnouncement] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const announce = useCallback((text: string, durationMs = ANNOUNCEMENT_MS) => {
    clearTimeout(timer.current);
    setAnnouncement(text);
    timer.current = setTimeout(() => setAnnouncement(""), durationMs);
  }, []);
  return [announcement, announce];
}

function OfflineBanner() {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const update = () => setOnline(navigator.onLine);
    addEventListener("online", update);
    addEventListener("offline", update);
    return () => {
      removeEventListener("online", update);
      removeEventListener("offline", update);
    };
  }, []);
  return (
    <div class="offline" role="status">
      {!isOnline && <p>You are offline. The data may be out of date until you are online again.</p>}
    </div>
  );
}

/** Shows once that the service is out of reach, whichever loads of the screen fail. Offline has its own banner. */
function OutageBox() {
  const outage = useOutage();
  if (!outage || !navigator.onLine) return null;
  return (
    <ErrorMessage error={outage.error}>
      <p class="retry">
        <button type="button" class="plain small" onClick={outage.retry}>
          Retry now
        </button>
        <span class="fine">It also retries by itself.</span>
      </p>
    </ErrorMessage>
  );
}

function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    // It may have changed since the render, before there was a listener.
    update();
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return useMemo(() => routeOf(hash), [hash]);
}

const PROJECTS_INTERVAL_MS = 30_000;

function Layout({ session, onSignOut }: { session: Session; onSignOut(): void }) {
  const projects = useLoaded("projects", (client) => client.listProjects(), PROJECTS_INTERVAL_MS);
  const route = useRoute();
  useEffect(updateTitle);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to main content
      </button>
      <header class="top">
        <a class="brand" href="#/projects" aria-label="Deployment webhooks">
          <img src="icon.svg" alt="" width="22" height="22" />
          <span>Deployment webhooks</span>
        </a>
        <nav aria-label="Main">
          {Object.entries(sections).map(([name, title]) => (
            <a key={name} href={`#/${name}`} aria-current={sectionOf(route) === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="account">
          <CurrentUser session={session} />
          <button type="button" class="plain small" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1} onKeyDown={moveInList}>
        <OutageBox />
        <ProjectsContext.Provider value={projects}>
          <Screen route={route} />
        </ProjectsContext.Provider>
      </main>
    </>
  );
}

const sections = { projects: "Projects", keys: "API keys", audit: "Audit" };

function sectionOf({ name }: Route): keyof typeof sections | undefined {
  if (name === "unknown" || name === "sign-in") return undefined;
  return name === "keys" || name === "audit" ? name : "projects";
}

function CurrentUser({ session: { kind, token, user, expiresAt } }: { session: Session }) {
  if (kind === "key") return <span class="fine">API key {token.slice(0, 12)}…</span>;
  return (
    <span class="fine">
      <span class="user">{user ?? "signed in"}</span>
      {expiresAt !== undefined && <SessionEnd at={expiresAt} />}
    </span>
  );
}

const LAST_MINUTES_MS = 5 * 60_000;

/** Counts down the last minutes of the token. Before them a countdown would only distract. */
function SessionEnd({ at }: { at: number }) {
  const now = useNow();
  if (at - now > LAST_MINUTES_MS) return null;
  return (
    <span class="warning" title="Then the token expires">
      {" · session ends in "}
      <Countdown endsAt={at} />
    </span>
  );
}

function Screen({ route }: { route: Route }) {
  switch (route.name) {
    case "projects":
      return <Projects />;
    case "keys":
      return <Keys />;
    case "audit":
      return <Audit />;
    case "sign-in":
      return <DeviceSignIn />;
    case "access":
      return <Access key={route.projectId} projectId={route.projectId} />;
    case "project-audit":
      return <Audit key={route.projectId} projectId={route.projectId} />;
    case "project":
      return <ProjectScreen key={route.projectId} {...route} />;
    case "webhook":
      return <WebhookScreen key={route.webhookId} {...route} />;
    case "unknown":
      return (
        <>
          <Heading>Page not found</Heading>
          <p>
            <a href="#/projects">Go to the projects</a>
          </p>
        </>
      );
  }
}
