import { render } from "preact";
import { App } from "./app.tsx";
import { followEvents } from "./client/live.ts";
import { findSession, followLinks } from "./client/session.ts";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no element #app");
followEvents();
followLinks();
render(<App start={findSession} />, root);
