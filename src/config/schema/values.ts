import { z } from "zod";
import { isAllowEntry } from "../../lib/public-address.ts";

/** An address without slashes at its end. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: "expected an http or https address" })
  .transform((text) => text.replace(/\/+$/, ""));

/** The price of a million tokens, in any currency. */
export const Price = z.number().min(0).max(1_000_000);

/** A host, an address or a range that may be reached although it is not public. */
export const AllowEntry = z
  .string()
  .min(1)
  .max(300)
  .refine(isAllowEntry, { error: "expected a host name, *.name, an address or a range such as 10.0.0.0/8" });
