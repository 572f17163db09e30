import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useCurrentInView } from "./view/current-in-view.ts";
import { isAway, unreachableSinceMs } from "./client/api.ts";
import { clock } from "./view/format.ts";
import { ManyProgress } from "./knowledge/many-progress.tsx";
import { OverviewPage } from "./overview/overview-page.tsx";
import { lazy } from "./parts/lazy.tsx";
import { Icon } from "./parts/icons.tsx";
import { ErrorNotice } from "./parts/notice.tsx";
import { Page } from "./parts/page.tsx";
import { Toasts } from "./parts/toast.tsx";
import { addressOf } from "./view/address.ts";
import { route } from "./view/router.ts";
import { lostSinceMs } from "./client/live.ts";
import { may, me, signOut } from "./client/session.ts";
import { SignInAgain, SignInPage } from "./sign-in.tsx";

/** A page of the menu. */
interface Entry {
  readonly name: string;
  readonly label: string;
  readonly icon: Parameters<typeof Icon>[0]["name"];
  readonly page: ComponentType;
  readonly isShown: () => boolean;
}

const ENTRIES: readonly Entry[] = [
  {
    name: "overview",
    label: "Overview",
    icon: "overview",
    page: OverviewPage,
    isShown: () => may("read"),
  },
  {
    name: "folders",
    label: "Folders",
    icon: "folder",
    page: lazy(async () => (await import("./folders/folders-page.tsx")).FoldersPage),
    isShown: () => me.value?.daemon === true,
  },
  {
    name: "knowledge",
    label: "Knowledge",
    icon: "books",
    page: lazy(async () => (await import("./knowledge/knowledge-page.tsx")).KnowledgePage),
    isShown: () => may("read"),
  },
  {
    name: "add",
    label: "Add",
    icon: "plus",
    page: lazy(async () => (await import("./knowledge/add-page.tsx")).AddPage),
    isShown: () => may("write"),
  },
  {
    name: "search",
    label: "Search",
    icon: "search",
    page: lazy(async () => (await import("./search/search-page.tsx")).SearchPage),
    isShown: () => may("read"),
  },
  {
    name: "ask",
    label: "Ask",
    icon: "chat",
    page: lazy(async () => (await import("./ask/ask-page.tsx")).AskPage),
    isShown: () => may("chat"),
  },
  {
    name: "access",
    label: "Access",
    icon: "key",
    page: lazy(async () => (await import("./access/access-page.tsx")).AccessPage),
    isShown: () => may("admin"),
  },
];

/** Pages that the menu does not list, below the entry that it marks instead. */
const FURTHER: Readonly<Record<string, { readonly below: string; readonly page: ComponentType }>> = {
  documents: {
    below: "knowledge",
    page: lazy(async () => (await import("./document/document-page.tsx")).DocumentPage),
  },
};

/** Pause before another try to find the session of a service that restarts. */
const START_RETRY_MS = 3000;

/** The console: the page of the address beside the menu, or the form to sign in. `start` finds the session. */
export function App({ start }: { readonly start: () => Promise<void> }): JSX.Element | null {
  const [problem, setProblem] = useState<unknown>();
  const begin = (): void => {
    setProblem(undefined);
    start().catch(setProblem);
  };
  useEffect(begin, []);
  useEffect(() => {
    if (!isAway(problem)) return undefined;
    const timer = setTimeout(begin, START_RETRY_MS);
    return () => clearTimeout(timer);
  }, [problem]);
  if (problem !== undefined) {
    return (
      <main class="sign-in">
        <ErrorNotice error={problem} retry={begin} />
      </main>
    );
  }
  if (me.value === undefined) return null;
  if (me.value === null) return <SignInPage />;
  const name = route.value.path[0] ?? ENTRIES.find((each) => each.isShown())?.name ?? "";
  const entry = FURTHER[name] ?? ENTRIES.find((each) => each.name === name && each.isShown());
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Side current={FURTHER[name]?.below ?? name} />
      <div>
        <Unreachable />
        <main class="main" id="main" tabIndex={-1}>
          {entry === undefined ? <NoPage /> : <entry.page />}
        </main>
      </div>
      <SignInAgain />
      <ManyProgress />
      <Toasts />
    </div>
  );
}

/** The address is the page's, so a link into it would leave the page. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Side({ current }: { readonly current: string | undefined }): JSX.Element {
  const nav = useCurrentInView<HTMLElement>(current);
  return (
    <header class="side">
      <div class="brand">
        <Icon name="books" size={20} />
        kbsync
      </div>
      <nav class="nav" aria-label="Pages" ref={nav}>
        <ul>
          {ENTRIES.filter((entry) => entry.isShown()).map(({ name, label, icon }) => (
            <li key={name}>
              <a href={addressOf([name])} aria-current={name === current ? "page" : undefined}>
                <Icon name={icon} />
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <div class="side-end">
        <LiveLink />
        <div class="who">
          Signed in with the key “{me.value?.key.name}” ({me.value?.key.scopes.join(", ")})
        </div>
        <div>
          <button type="button" class="button small" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </div>
    </header>
  );
}

/** Says so if what happens is not followed at present. */
function LiveLink(): JSX.Element | null {
  const sinceMs = lostSinceMs.value;
  if (sinceMs === null) return null;
  return (
    <p class="small muted live-link" role="status">
      <Icon name="alert" size={13} /> Live link lost. As of {clock(sinceMs)}.
    </p>
  );
}

function Unreachable(): JSX.Element | null {
  const sinceMs = unreachableSinceMs.value;
  if (sinceMs === null) return null;
  return (
    <div class="banner" role="status">
      The service does not answer since {clock(sinceMs)}, perhaps because it restarts. The console tries again
      by itself; what you see is from before.
    </div>
  );
}

function NoPage(): JSX.Element {
  return (
    <Page title="No such page">
      <p>
        There is nothing at this address. <a href={addressOf([])}>Go to the start.</a>
      </p>
    </Page>
  );
}
