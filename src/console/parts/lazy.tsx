import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Bones, ErrorNotice } from "./notice.tsx";

/** A page whose code is loaded when a person first goes there. */
export function lazy(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | undefined;
  return function Lazy(): JSX.Element {
    const [Found, setFound] = useState<ComponentType | undefined>(() => loaded);
    const [error, setError] = useState<unknown>();
    useEffect(() => {
      if (Found !== undefined) return;
      load().then(
        (component) => {
          loaded = component;
          setFound(() => component);
        },
        // After an upgrade of the service the file has another name.
        () =>
          setError(new Error("This page could not be loaded. Reload the console: the service may be newer.")),
      );
    }, []);
    if (Found !== undefined) return <Found />;
    return error === undefined ? (
      <div class="page">
        <Bones lines={6} />
      </div>
    ) : (
      <ErrorNotice error={error} retry={() => location.reload()} />
    );
  };
}
