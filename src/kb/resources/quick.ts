import { STILL_READ } from "../../wire/constants.ts";
import { DEFAULT_SETTINGS } from "../../wire/primitives.ts";
import type { CreateBody, UpdateBody } from "../../wire/resource.ts";
import type { Resource } from "../store/resources.ts";

/**
 * Reports whether a create takes only a moment: its text is split without a model, the longest one in a second or two. A job would
 * write the text twice, so a caller that accepts a wait of some seconds gets the result directly.
 */
export function isQuickCreate({ content, settings }: CreateBody): boolean {
  return content !== undefined && (settings ?? DEFAULT_SETTINGS).strategy === "recursive";
}

/** Reports the same of an update. An update behind a queued change is never quick. */
export function isQuickUpdate(before: Resource, { content, url, settings }: UpdateBody): boolean {
  if (isUnderWay(before) || url !== undefined) return false;
  if (content === undefined && settings === undefined) return true;
  const strategy = settings?.strategy ?? before.settings.strategy;
  return strategy === "recursive";
}

/** Reports whether the text of a resource is not written, or not whole yet. */
export function isUnderWay({ status, warning }: Pick<Resource, "status" | "warning">): boolean {
  return status === "queued" || (status === "chunked" && warning?.endsWith(STILL_READ) === true);
}
