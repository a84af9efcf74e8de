import { useId, useState } from "preact/hooks";
import { CopyButton } from "./components.tsx";
import { SECRET_PLACEHOLDER, type SnippetLanguage, snippetLanguages, snippets } from "./snippets.ts";

const labels: Record<SnippetLanguage, string> = { node: "Node", python: "Python", shell: "Shell" };

/** Code that verifies signatures. @param secret undefined = the code contains a placeholder */
export function Verify({ secret }: { secret: string | undefined }) {
  const id = useId();
  const [language, setLanguage] = useState<SnippetLanguage>("node");
  const code = snippets[language](secret ?? SECRET_PLACEHOLDER);

  function selectByArrowKey(event: KeyboardEvent): void {
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
        Every delivery has an <code>X-Service-Signature</code> header: the HMAC-SHA256 of the raw body, keyed with the
        full secret. Verify it before you parse the body. It does not detect a replayed request. To detect replays,
        verify <code>webhook-signature</code> with any Standard Webhooks library or the receivers in{" "}
        <code>docs/receivers</code>.
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
              onKeyDown={selectByArrowKey}
            >
              {labels[each]}
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
    </section>
  );
}
