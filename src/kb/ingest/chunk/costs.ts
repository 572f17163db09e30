/**
 * What a cut costs. The plan of a text is the list of cuts with the least sum, each chunk adding `CHUNK_COST`; so
 * the figures say how many more chunks a better place is worth. With these a section that fills a third of a chunk
 * stands alone rather than have a paragraph cut off another, and paragraphs that fill half of one are kept whole
 * rather than cut at a sentence. Halving or doubling single figures moved the recall of judged passages by no more
 * than chance; the order of the figures matters.
 */
export const CHUNK_COST = 4;

/** Before a heading, by its level (1–6; 0 is unused). */
export const HEADING_COSTS: readonly number[] = [0, 0, 1, 2, 3, 4, 5];

/** Before a thematic break, which parts sections too. */
export const RULE_COST = 8;

/** Before a block that a blank line sets apart. */
export const BLOCK_COST = 12;
/** Added where the block is indented, so that code prefers to be cut between its outermost parts. */
export const INDENTED_COST = 4;
/** Added where the text before ends in a colon: it announces what follows. */
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

/** After a line of a whole paragraph, in texts that put no blank line between them. */
export const PARAGRAPH_LINE_COST = 14;
/** Before a line of a paragraph: after the end of a sentence; not; and where the sentence visibly runs on. */
export const SENTENCE_LINE_COST = 24;
export const LINE_COST = 28;
export const WRAPPED_LINE_COST = 40;
/** Added to cuts within the text of a list item or quotation. */
export const INNER_COST = 4;

/** Before a sentence, surely and perhaps. */
export const SENTENCE_COST = 30;
export const DOUBTFUL_SENTENCE_COST = 36;
/** Before a word, after a comma or the like and otherwise; within a word. */
export const CLAUSE_COST = 65;
export const WORD_COST = 80;
export const CHARACTER_COST = 200;

/** Added to each cut inside a code block, table or list that fits into a chunk: it stays whole. */
export const WHOLE_COST = 60;
/** Before the second line of a pair that means little apart: a table's head and its first row, a fence and its code. */
export const PAIR_COST = 120;
/** After a heading: only where nothing else is possible. */
export const GLUE_COST = 400;
