import { render } from "preact";
import { App } from "./app.tsx";
import { followEvents } from "./client/live.ts";
import { findSession } from "./client/session.ts";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no element #app");
followEvents();
render(<App start={findSession} />, root);
