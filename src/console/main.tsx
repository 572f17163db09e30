import { render } from "preact";
import { App } from "./app.tsx";
import { findSession } from "./client/session.ts";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no element #app");
render(<App start={findSession} />, root);
