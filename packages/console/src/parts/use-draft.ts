import { useState } from "preact/hooks";
import { drafts } from "../data/session.ts";

/**
 * The state of a field that is kept while its form is open, also when the session ends.
 * @param name unique in the screen
 */
export function useDraft<Value>(name: string, initial: Value): [Value, (value: Value) => void] {
  const key = `${location.hash} ${name}`;
  const [value, setValue] = useState(() => (drafts.kept.has(key) ? (drafts.kept.get(key) as Value) : initial));
  return [
    value,
    (next) => {
      drafts.open.set(key, next);
      setValue(next);
    },
  ];
}
