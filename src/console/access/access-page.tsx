import type { JSX } from "preact";
import { Page } from "../parts/page.tsx";
import { addressOf } from "../view/address.ts";
import { useCurrentInView } from "../view/current-in-view.ts";
import { route } from "../view/router.ts";
import { AgentsTab } from "./agents-tab.tsx";
import { KeysTab } from "./keys-tab.tsx";
import { UsageTab } from "./usage-tab.tsx";
import { WebhooksTab } from "./webhooks-tab.tsx";

const TABS = ["keys", "webhooks", "agents", "usage"] as const;
const LABELS = { keys: "Keys", webhooks: "Webhooks", agents: "Agents", usage: "Usage" } as const;
const CONTENT = { keys: KeysTab, webhooks: WebhooksTab, agents: AgentsTab, usage: UsageTab } as const;

/** Who and what may use the account: keys, endpoints for events, agents. */
export function AccessPage(): JSX.Element {
  const chosen = TABS.find((each) => each === route.value.query.get("tab")) ?? "keys";
  const Content = CONTENT[chosen];
  const tabs = useCurrentInView<HTMLElement>(chosen);
  return (
    <Page
      title="Access and usage"
      intro="Keys of programs and people, addresses that receive events, agents that answer questions, and what the account used."
    >
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
