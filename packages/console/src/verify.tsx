import { useId, useState } from "preact/hooks";
import { CopyButton } from "./parts.tsx";
import { SECRET_PLACEHOLDER, type SnippetLanguage, snippetLanguages, snippets } from "./snippets.ts";

const labels: Record<SnippetLanguage, string> = { node: "Node", python: "Python", shell: "Shell" };

/** Code for the receiver. @param secret when it has just been shown */
export function Verify({ secret }: { secret: string | undefined }) {
  const id = useId();
  const [language, setLanguage] = useState<SnippetLanguage>("node");
  const code = snippets[language](secret ?? SECRET_PLACEHOLDER);

  function moveOn(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const count = snippetLanguages.length;
    const next = snippetLanguages[(snippetLanguages.indexOf(language) + step + count) % count] ?? language;
    setLanguage(next);
    document.getElementById(`${id}-${next}`)?.focus();
  }

  return (
    <section class="verify" aria-label="Verify">
      <p class="lead">
        Every delivery carries <code>X-Service-Signature</code>: the HMAC-SHA256 of the body as it came, keyed with the
        whole secret. Verify it before you parse the body. It cannot tell a replay; <code>webhook-signature</code> can:
        the receivers in <code>docs/receivers</code> verify it, and any library of Standard Webhooks.
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
              onKeyDown={moveOn}
            >
              {labels[each]}
            </button>
          ))}
        </div>
        <CopyButton text={code} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so the keyboard has to get there */}
      <div class="code" id={`${id}-code`} role="tabpanel" aria-labelledby={`${id}-${language}`} tabIndex={0}>
        <pre>{code}</pre>
      </div>
      {secret === undefined ? (
        <p class="fine">The secret was shown when the webhook was made. It is lost? Rotate it.</p>
      ) : (
        <p class="note wait">
          The code holds the secret that you have just been shown. After a reload it is gone from here.
        </p>
      )}
    </section>
  );
}
