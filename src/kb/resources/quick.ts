import { STILL_READ } from "../../wire/constants.ts";
import { DEFAULT_SETTINGS } from "../../wire/primitives.ts";
import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { Resource } from "../store/resources.ts";

/** Longest text that counts as quick: splitting and indexing it takes a fraction of a second. */
const QUICK_CHARS_MAX = 1_000_000;

/**
 * Reports whether a create takes only a moment: a text of moderate length that is split without a model. A job would write such a
 * text twice, so a caller that accepts a wait of some seconds gets the result directly.
 */
export function isQuickCreate({ content, settings }: CreateBody): boolean {
  const { strategy } = settings ?? DEFAULT_SETTINGS;
  return content !== undefined && isQuickText(content, strategy);
}

/** Reports the same of an update. An update behind a queued change is never quick. */
export function isQuickUpdate(before: Resource, { content, url, settings }: UpdateBody): boolean {
  if (isUnderWay(before) || url !== undefined) return false;
  if (content === undefined && settings === undefined) return true;
  const { strategy } = { ...before.settings, ...settings };
  return isQuickText(content ?? before.content, strategy ?? before.settings.strategy);
}

function isQuickText(text: string, strategy: string): boolean {
  return strategy === "recursive" && text.length <= QUICK_CHARS_MAX;
}

/** Reports whether the text of a resource is not written, or not whole yet. */
export function isUnderWay({ status, warning }: Pick<Resource, "status" | "warning">): boolean {
  return status === "queued" || (status === "chunked" && warning?.endsWith(STILL_READ) === true);
}
