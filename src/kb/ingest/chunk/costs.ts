/**
 * Costs of cuts. The plan of a text is the list of cuts with the smallest sum, where each chunk adds `CHUNK_COST`; so a cost says
 * how many extra chunks a better cut is worth. With these values a section that fills a third of a chunk stays alone rather than
 * take a part of the next one, and paragraphs of half a chunk stay whole rather than split at a sentence. Halving or doubling
 * single values changed the recall of judged passages no more than chance; their order matters.
 */
export const CHUNK_COST = 4;

/** Before a heading, by its level (1–6; 0 is unused). */
export const HEADING_COSTS: readonly number[] = [0, 0, 1, 2, 3, 4, 5];

/** Before a thematic break, which also separates sections. */
export const RULE_COST = 8;

/** Before a block after a blank line. */
export const BLOCK_COST = 12;
/** Added if the block is indented, so that code splits between its outermost parts. */
export const INDENTED_COST = 4;
/** Added if the text before ends in a colon and so introduces the block. */
export const ANNOUNCED_COST = 10;
/** Before a block that follows text without a blank line. */
export const TIGHT_BLOCK_COST = 15;

/** Before a list item of the outermost list; each step of indentation adds `NESTED_COST`. */
export const ITEM_COST = 16;
export const NESTED_COST = 2;
export const NESTING_MAX = 4;
/** Before a further paragraph of the same list item. */
export const ITEM_PARAGRAPH_COST = 22;

/** Before an object of a list in JSON, with `NESTED_COST` for each step of indentation. */
export const RECORD_COST = 14;

/** Before a table row. */
export const ROW_COST = 26;
/** Before a line of a code block, with and without a blank line before it. */
export const CODE_BLOCK_COST = 24;
export const CODE_LINE_COST = 34;

/** After a line that is a whole paragraph, in texts without blank lines between paragraphs. */
export const PARAGRAPH_LINE_COST = 14;
/** Before a line of a paragraph: after the end of a sentence; otherwise; and if the sentence visibly continues. */
export const SENTENCE_LINE_COST = 24;
export const LINE_COST = 28;
export const WRAPPED_LINE_COST = 40;
/** Added to cuts within the text of a list item or quotation. */
export const INNER_COST = 4;

/** Before a sentence: certain and doubtful. */
export const SENTENCE_COST = 30;
export const DOUBTFUL_SENTENCE_COST = 36;
/** Before a word, after a comma or the like and otherwise; within a word. */
export const CLAUSE_COST = 65;
export const WORD_COST = 80;
export const CHARACTER_COST = 200;

/** Added to each cut inside a code block, table or list that fits into a chunk, to keep it whole. */
export const WHOLE_COST = 60;
/** Inside a pair that belongs together: a table's head and its first row, a fence and its code. */
export const PAIR_COST = 120;
/** After a heading: a last resort. */
export const GLUE_COST = 400;
