import { skipSpace } from "./characters.ts";
import * as cost from "./costs.ts";
import * as lines from "./lines.ts";
import type { LineKind } from "./lines.ts";
import { isLowerCase } from "./pieces.ts";
import { lastCode } from "./scan.ts";
import type { Scan } from "./scan.ts";
import { endsSentence } from "./sentences.ts";

/** Returns the cost of a cut before a line. */
export function priceOf(scan: Scan, kind: LineKind, begin: number, end: number, indent: number): number {
  if (scan.headingsBegin >= 0) return cost.GLUE_COST;
  if (scan.kind === "rule") return cost.PAIR_COST;
  switch (kind) {
    case "heading":
      return cost.HEADING_COSTS[lines.headingLevel(scan.text, begin, end)] ?? 0;
    case "rule":
      return cost.RULE_COST;
    case "item":
      if (scan.listPiece < 0) return blockPrice(scan, indent);
      return cost.ITEM_COST + cost.NESTED_COST * Math.min(indent >> 1, cost.NESTING_MAX);
    case "row":
      return scan.tablePiece < 0 ? blockPrice(scan, indent) : rowPrice(scan, begin, end);
    case "fence":
      return scan.listPiece < 0 ? blockPrice(scan, indent) : cost.ITEM_PARAGRAPH_COST;
    case "quote":
      return scan.kind === "quote" && !scan.blank ? quotedPrice(scan, begin) : blockPrice(scan, indent);
    case "text":
      if (isRecord(scan, begin))
        return cost.RECORD_COST + cost.NESTED_COST * Math.min(indent >> 1, cost.NESTING_MAX);
      if (scan.listPiece < 0) {
        return scan.blank || scan.kind !== "text" ? blockPrice(scan, indent) : linePrice(scan, begin);
      }
      return scan.blank ? cost.ITEM_PARAGRAPH_COST : linePrice(scan, begin) + cost.INNER_COST;
  }
}

/** Whether a line starts an object of a JSON list. */
export function isRecord(scan: Scan, begin: number): boolean {
  if (scan.text.charCodeAt(begin) !== 0x7b || scan.kind !== "text") return false;
  const before = lastCode(scan);
  return before === 0x2c || before === 0x5b; // , [
}

function blockPrice(scan: Scan, indent: number): number {
  const price = scan.blank ? cost.BLOCK_COST : cost.TIGHT_BLOCK_COST;
  const announced = lastCode(scan) === 0x3a ? cost.ANNOUNCED_COST : 0;
  return price + announced + (indent > 0 ? cost.INDENTED_COST : 0);
}

function linePrice(scan: Scan, begin: number): number {
  if (endsSentence(lastCode(scan))) {
    return scan.lineUnits > WRAPPED_UNITS_MAX ? cost.PARAGRAPH_LINE_COST : cost.SENTENCE_LINE_COST;
  }
  return isLowerCase(scan.text.charCodeAt(begin)) ? cost.WRAPPED_LINE_COST : cost.LINE_COST;
}

/** Longest line that editors wrap: a longer one is a whole paragraph. */
const WRAPPED_UNITS_MAX = 160;

function quotedPrice(scan: Scan, begin: number): number {
  // A lone `>` separates two paragraphs of a quotation.
  if (lastCode(scan) === 0x3e) return cost.ITEM_PARAGRAPH_COST;
  return linePrice(scan, skipSpace(scan.text, begin + 1, scan.text.length)) + cost.INNER_COST;
}

function rowPrice(scan: Scan, begin: number, end: number): number {
  if (scan.tableRows === 1 && lines.isDelimiterRow(scan.text, begin, end)) {
    scan.tableHasHead = true;
    return cost.PAIR_COST;
  }
  return scan.tableRows === 2 && scan.tableHasHead ? cost.PAIR_COST : cost.ROW_COST;
}
