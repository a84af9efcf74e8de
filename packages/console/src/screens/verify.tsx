import { useEffect, useId, useState } from "preact/hooks";
import { filesOf, SECRET_PLACEHOLDER, type SnippetLanguage, snippetLanguages, snippets } from "../data/snippets.ts";
import { Code, CopyButton, ErrorMessage, Skeleton } from "../parts/components.tsx";

/** Code that verifies signatures. @param secret undefined = the code contains a placeholder */
export function Verify({ secret }: { secret: string | undefined }) {
  const id = useId();
  const [language, setLanguage] = useState<SnippetLanguage>("node");
  const code = snippets[language].code(secret ?? SECRET_PLACEHOLDER);

  function selectByKey(event: KeyboardEvent): void {
    const next = tabAfter(language, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setLanguage(next);
    document.getElementById(`${id}-${next}`)?.focus();
  }

  return (
    <section class="verify" aria-label="Verify">
      <p class="lead">
        Every delivery is signed as Standard Webhooks specifies, in the headers <code>webhook-id</code>,{" "}
        <code>webhook-timestamp</code> and <code>webhook-signature</code>: any of its libraries works. Verify the raw
        body before you parse it, and respond with 401 if that fails. For receivers that can only hash the body there is{" "}
        <code>X-Service-Signature</code>, which does not detect a replayed request.
      </p>
      <div class="head">
        <div role="tablist" aria-label="Language">
          {snippetLanguages.map((each) => (
            <button
              key={each}
              id={`${id}-${each}`}
              type="button"
              role="tab"
              aria-selected={each === language}
              aria-controls={`${id}-code`}
              tabIndex={each === language ? 0 : -1}
              onClick={() => setLanguage(each)}
              onKeyDown={selectByKey}
            >
              {snippets[each].label}
            </button>
          ))}
        </div>
        <CopyButton text={code} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must be able to focus it */}
      <div class="code" id={`${id}-code`} role="tabpanel" aria-labelledby={`${id}-${language}`} tabIndex={0}>
        <pre>{code}</pre>
      </div>
      {secret === undefined ? (
        <p class="fine">
          The secret was shown when the webhook was created. If it is lost, a project admin can rotate it.
        </p>
      ) : (
        <p class="note warning">The code contains the new secret. A reload of the page removes it from here.</p>
      )}
      <ReceiverFiles key={language} language={language} />
      <p class="fine">
        A signature does not match? <code>svc verify --headers headers.txt --body body.json</code> names the mistake.
      </p>
    </section>
  );
}

/** Returns the tab that a key of the ARIA pattern leads to. */
function tabAfter(language: SnippetLanguage, key: string): SnippetLanguage | undefined {
  const count = snippetLanguages.length;
  const index = snippetLanguages.indexOf(language);
  const next = { ArrowRight: index + 1, ArrowLeft: index - 1 + count, Home: 0, End: count - 1 }[key];
  return next === undefined ? undefined : snippetLanguages[next % count];
}

let loadedFiles: Promise<Record<string, string>> | undefined;

/** Loads the code of docs/receivers from the server of the page. */
function loadFiles(): Promise<Record<string, string>> {
  loadedFiles ??= fetch("receivers.json", { credentials: "omit" })
    .then((response) => response.json())
    .catch((error) => {
      loadedFiles = undefined;
      throw error;
    });
  return loadedFiles;
}

/** The files that the code needs, and those for frameworks. */
function ReceiverFiles({ language }: { language: SnippetLanguage }) {
  const [files, setFiles] = useState<Record<string, string>>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    loadFiles().then(setFiles, () => setError(new Error("The files could not be loaded. Reload the page.")));
  }, []);
  if (error) return <ErrorMessage error={error} />;
  if (!files) return <Skeleton rows={1} />;
  return (
    <div class="files">
      <h2>Files to put beside it</h2>
      {filesOf(language, files).map(([path, text]) => (
        <ReceiverFile key={path} path={path} text={text} />
      ))}
    </div>
  );
}

function ReceiverFile({ path, text }: { path: string; text: string }) {
  const name = path.slice(path.indexOf("/") + 1);
  return (
    <details>
      <summary>
        <code>{name}</code> <span class="fine">{notes[path] ?? "verifies the signature; standard library only"}</span>
      </summary>
      <div class="head">
        <CopyButton text={text} label={`Copy ${name}`} />
      </div>
      <Code label={name}>{text}</Code>
    </details>
  );
}

const notes: Partial<Record<string, string>> = {
  "node/express.mjs": "for Express",
  "node/fastify.mjs": "for Fastify",
  "node/next.mjs": "for Next.js",
  "node/lambda.mjs": "for AWS Lambda",
  "node/inbox.mjs": "accepts each delivery once; the files for frameworks use it",
  "shell/verify-webhook.sh": "for manual checks only; needs openssl",
};
