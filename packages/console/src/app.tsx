import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api, type Refusal } from "./api.ts";
import { Keys } from "./keys.tsx";
import { Countdown, Empty } from "./parts.tsx";
import { ProjectScreen } from "./project.tsx";
import { Projects, ProjectsContext } from "./projects.tsx";
import { type Route, routeOf } from "./route.ts";
import { forgetSession, keepSession, keptSession, type Session } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { SignedInContext, useLoaded, useSignedIn } from "./signed-in.ts";
import { WebhookScreen } from "./webhook.tsx";

interface AppProps {
  apiUrl: string;
  sendsEvents: boolean;
}

export function App({ apiUrl, sendsEvents }: AppProps) {
  const [session, setSession] = useState(keptSession);
  const [refusal, setRefusal] = useState<Refusal>();
  const [message, say] = useMessage();

  const signOut = useCallback((reason?: Refusal) => {
    forgetSession();
    setSession(undefined);
    setRefusal(reason);
  }, []);

  const apiFor = useCallback(
    ({ token }: Session) => {
      const onWait = (seconds: number) => say(`The service is busy. Trying again in ${seconds} s.`, seconds * 1000);
      return new Api({ baseUrl: apiUrl, token, onWait });
    },
    [apiUrl, say],
  );

  const signedIn = useMemo(
    () => session && { api: apiFor(session), session, sendsEvents, say, signOut },
    [session, apiFor, sendsEvents, say, signOut],
  );

  return (
    <>
      {signedIn ? (
        <SignedInContext.Provider value={signedIn}>
          <Frame session={signedIn.session} onSignOut={() => signOut()} />
        </SignedInContext.Provider>
      ) : (
        <SignIn
          reason={refusal}
          check={(candidate) => apiFor(candidate).projects()}
          onSignIn={(accepted) => {
            keepSession(accepted);
            setRefusal(undefined);
            setSession(accepted);
          }}
        />
      )}
      <Offline />
      <div class="message" role="status" aria-live="polite">
        {message && <p>{message}</p>}
      </div>
    </>
  );
}

const MESSAGE_MS = 4_000;

function useMessage(): [string, (text: string, forMs?: number) => void] {
  const [message, setMessage] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const say = useCallback((text: string, forMs = MESSAGE_MS) => {
    clearTimeout(timer.current);
    setMessage(text);
    timer.current = setTimeout(() => setMessage(""), forMs);
  }, []);
  return [message, say];
}

function Offline() {
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
      {!isOnline && <p>This device is offline. What you see is from before; it goes on by itself.</p>}
    </div>
  );
}

function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return useMemo(() => routeOf(hash), [hash]);
}

const PROJECTS_EVERY_MS = 30_000;

function Frame({ session, onSignOut }: { session: Session; onSignOut(): void }) {
  const { api } = useSignedIn();
  const projects = useLoaded(
    "projects",
    (signal) => api.projects(signal),
    () => PROJECTS_EVERY_MS,
  );
  const route = useRoute();
  const place = route.name === "keys" ? "keys" : "projects";
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <a class="brand" href="#/projects">
          <img src="icon.svg" alt="" width="22" height="22" />
          <span>Deployment webhooks</span>
        </a>
        <nav aria-label="Main">
          <a href="#/projects" aria-current={place === "projects" ? "page" : undefined}>
            Projects
          </a>
          <a href="#/keys" aria-current={place === "keys" ? "page" : undefined}>
            API keys
          </a>
        </nav>
        <div class="who">
          <Who session={session} />
          <button type="button" class="plain small" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <ProjectsContext.Provider value={projects}>
          <Screen route={route} />
        </ProjectsContext.Provider>
      </main>
    </>
  );
}

function Who({ session: { kind, token, user, expiresAt } }: { session: Session }) {
  if (kind === "key") return <span class="fine">API key {token.slice(0, 12)}…</span>;
  return (
    <span class="fine">
      <span class="user">{user ?? "signed in"}</span>
      {expiresAt !== undefined && (
        <span title="The token ends then, and with it this session.">
          {" · "}
          <Countdown endsAt={expiresAt} />
        </span>
      )}
    </span>
  );
}

function Screen({ route }: { route: Route }) {
  switch (route.name) {
    case "projects":
      return <Projects />;
    case "keys":
      return <Keys />;
    case "project":
      return <ProjectScreen key={route.projectId} projectId={route.projectId} />;
    case "webhook":
      return <WebhookScreen key={route.webhookId} {...route} />;
    case "unknown":
      return (
        <Empty title="There is no such page.">
          <a href="#/projects">To the projects</a>
        </Empty>
      );
  }
}
