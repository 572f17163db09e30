import { lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";

/**
 * Shows Markdown that a model wrote. HTML stays text, images become links, and links lead to the web alone. `cite` shows the
 * reference `[3]`; undefined: it is none, and stays text.
 */
export function Markdown({
  text,
  cite,
}: {
  readonly text: string;
  readonly cite: (number: number) => JSX.Element | undefined;
}): JSX.Element {
  return <div class="markdown stack tight">{blocks(lexer(text, { gfm: true }), cite)}</div>;
}

type Cite = (number: number) => JSX.Element | undefined;

function blocks(tokens: readonly Token[], cite: Cite): ComponentChildren {
  return tokens.map((token, at) => <Block key={at} token={token} cite={cite} />);
}

function Block({ token, cite }: { readonly token: Token; readonly cite: Cite }): JSX.Element | null {
  // The union of tokens has a generic member, so its kinds are distinguished by name.
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return (
        <p>
          <strong>{inline((token as Tokens.Heading).tokens, cite)}</strong>
        </p>
      );
    case "code":
      return (
        <pre>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens, cite)}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, at) => <li key={at}>{blocks(item.tokens, cite)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Table table={token as Tokens.Table} cite={cite} />;
    case "text":
    case "paragraph": {
      const { tokens, text } = token as Tokens.Paragraph;
      const shown = tokens === undefined ? withCitations(text, cite) : inline(tokens, cite);
      return token.type === "text" ? <span>{shown}</span> : <p>{shown}</p>;
    }
    default:
      return <p>{token.raw}</p>;
  }
}

function Table({ table, cite }: { readonly table: Tokens.Table; readonly cite: Cite }): JSX.Element {
  return (
    <div>
      <table class="table">
        <thead>
          <tr>
            {table.header.map((cell, at) => (
              <th key={at} scope="col">
                {inline(cell.tokens, cite)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens, cite)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: readonly Token[], cite: Cite): ComponentChildren {
  return tokens.map((token, at) => <Inline key={at} token={token} cite={cite} />);
}

function Inline({ token, cite }: { readonly token: Token; readonly cite: Cite }): JSX.Element {
  switch (token.type) {
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens, cite)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens, cite)}</em>;
    case "del":
      return <s>{inline((token as Tokens.Del).tokens, cite)}</s>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link": {
      const { href, tokens } = token as Tokens.Link;
      return <WebLink href={href}>{inline(tokens, cite)}</WebLink>;
    }
    case "image": {
      const { href, text } = token as Tokens.Image;
      return <WebLink href={href}>{text === "" ? href : text}</WebLink>;
    }
    case "escape":
      return <>{(token as Tokens.Escape).text}</>;
    case "text": {
      const { tokens, text } = token as Tokens.Text;
      return <>{tokens === undefined ? withCitations(text, cite) : inline(tokens, cite)}</>;
    }
    default:
      return <>{token.raw}</>;
  }
}

/** A link to the web, which does not learn the address of the console. Any other address stays text. */
function WebLink({
  href,
  children,
}: {
  readonly href: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  if (!/^https?:\/\//i.test(href))
    return (
      <>
        {children} ({href})
      </>
    );
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function withCitations(text: string, cite: Cite): ComponentChildren {
  return text.split(/(\[\d{1,3}\])/).map((part, at) => {
    const number = /^\[(\d+)\]$/.exec(part)?.[1];
    const shown = number === undefined ? undefined : cite(Number(number));
    return shown === undefined ? part : <span key={at}>{shown}</span>;
  });
}
