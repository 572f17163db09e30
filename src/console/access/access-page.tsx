import type { JSX } from "preact";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { useCurrentInView } from "../view/current-in-view.ts";
import { route } from "../view/router.ts";
import { KeysTab } from "./keys-tab.tsx";
import { WebhooksTab } from "./webhooks-tab.tsx";

const TABS = ["keys", "webhooks"] as const;
const LABELS = { keys: "Keys", webhooks: "Webhooks" } as const;
const CONTENT = { keys: KeysTab, webhooks: WebhooksTab } as const;

/** Who and what may use the account: keys, endpoints for events. */
export function AccessPage(): JSX.Element {
  const chosen = TABS.find((each) => each === route.value.query.get("tab")) ?? "keys";
  const Content = CONTENT[chosen];
  const tabs = useCurrentInView<HTMLElement>(chosen);
  return (
    <Page title="Access" intro="Keys of programs and people, and addresses that receive events.">
      <nav class="tabs" aria-label="Parts of this page" ref={tabs}>
        {TABS.map((tab) => (
          <a
            key={tab}
            href={addressOf(["access"], { tab })}
            aria-current={tab === chosen ? "page" : undefined}
          >
            {LABELS[tab]}
          </a>
        ))}
      </nav>
      <Content key={chosen} />
    </Page>
  );
}
