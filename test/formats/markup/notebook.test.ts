import { describe, expect, it } from "vitest";
import { notebookMarkdown } from "../../../src/formats/markup/notebook.ts";

const PICTURE = "iVBORw0KGgo".repeat(100);

describe("a notebook", () => {
  it("a notebook yields its cells in order: Markdown, code in fences of its language, text outputs, no image", () => {
    const notebook = {
      nbformat: 4,
      metadata: { language_info: { name: "R" } },
      cells: [
        { cell_type: "markdown", source: ["# Harvest\n", `![x](data:image/png;base64,${PICTURE})`] },
        {
          cell_type: "code",
          source: "plot(x) # ```",
          outputs: [
            { output_type: "stream", name: "stdout", text: ["\u001b[31m10 %\rdone\n", "next\n"] },
            { output_type: "display_data", data: { "image/png": PICTURE, "text/plain": ["<Figure>"] } },
            {
              output_type: "execute_result",
              data: { "text/html": ["<b>", "x</b>"], "text/plain": "  a\n1 2" },
            },
            { output_type: "error", ename: "ValueError", evalue: "no", traceback: ["\u001b[0m"] },
          ],
        },
        { cell_type: "raw", source: "as it is" },
        { cell_type: "code", source: "", outputs: [] },
      ],
    };
    expect(notebookMarkdown(JSON.stringify(notebook, null, 1))).toBe(
      [
        "# Harvest\n![x](data:image/png;base64,…)",
        "````r\nplot(x) # ```\n````",
        "Output:\n\n```\ndone\nnext\n```",
        "```\n<Figure>\n```",
        "```\n  a\n1 2\n```",
        "```\nValueError: no\n```",
        "```\nas it is\n```",
      ].join("\n\n"),
    );
  });

  it("a notebook of format 3 is read too", () => {
    const cells = [
      { cell_type: "heading", level: 2, source: "Part" },
      {
        cell_type: "code",
        language: "python",
        input: ["1 + 1"],
        outputs: [{ output_type: "pyout", text: ["2"] }],
      },
    ];
    expect(notebookMarkdown(JSON.stringify({ nbformat: 3, worksheets: [{ cells }] }))).toBe(
      "## Part\n\n```python\n1 + 1\n```\n\nOutput:\n\n```\n2\n```",
    );
  });

  it("a long output is shortened to its beginning, with the number of omitted characters", () => {
    const output = { output_type: "stream", text: "row\n".repeat(5000) };
    const cells = [{ cell_type: "code", source: "x", outputs: [output] }];
    const text = notebookMarkdown(JSON.stringify({ nbformat: 4, cells })) ?? "";
    expect(text.length).toBeLessThan(11_000);
    expect(text).toContain("(9999 more characters of this output are left out.)");
  });

  it("a notebook with many megabytes of images is read", () => {
    const data = { "image/png": "A".repeat(20_000_000), "text/plain": "<Figure>" };
    const cells = [{ cell_type: "code", source: "x", outputs: [{ output_type: "display_data", data }] }];
    expect(notebookMarkdown(JSON.stringify({ nbformat: 4, cells }))).toContain("<Figure>");
  });

  it.each([
    "",
    "{",
    "[]",
    "{}",
    '{"nbformat":"4"}',
    '{"cells":[]}',
    '{"nbformat":4}',
    '{"cells":5,"nbformat":4}',
    '{"worksheets":{},"nbformat":3}',
    "# text",
  ])("a notebook is not %j", (text) => {
    expect(notebookMarkdown(text)).toBeUndefined();
  });

  it.each([
    ["lists in each other", `{"nbformat":4,"cells":${"[".repeat(500_000)}${"]".repeat(500_000)}}`],
    ["keys without values", `{"nbformat":4,${'"image/png":['.repeat(100_000)}`],
    ["fences", JSON.stringify({ nbformat: 4, cells: [{ cell_type: "raw", source: "`".repeat(1_000_000) }] })],
    ["odd cells", '{"nbformat":4,"cells":[1,null,{"cell_type":"code","source":{},"outputs":[[],7]}]}'],
  ])("a notebook made to be hard (%s) costs no more than its length", (_name, text) => {
    const before = process.cpuUsage();
    notebookMarkdown(text);
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
  });
});
