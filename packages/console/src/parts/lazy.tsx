import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Skeleton } from "./components.tsx";

/** Returns a component whose code is loaded when it is first shown. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return (props: Props) => {
    const [Shown, setShown] = useState<ComponentType<Props> | undefined>(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          setShown(() => component);
        },
        () => setFailed(true),
      );
    }, []);
    if (Shown) return <Shown {...props} />;
    return hasFailed ? <NotLoaded /> : <Skeleton />;
  };
}

/** A new version of the page replaces the files of the one that is open. */
const NotLoaded = () => (
  <div class="note bad" role="alert">
    <p>This part of the page could not be loaded. The console may have been updated.</p>
    <button type="button" class="plain small" onClick={() => location.reload()}>
      Reload the page
    </button>
  </div>
);
