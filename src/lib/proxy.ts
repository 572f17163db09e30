import { Agent, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { isLoopback } from "./loopback.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** This machine is never reached through a proxy, whatever NO_PROXY says. */
const LOOPBACK = "localhost,127.0.0.1,::1";
const VARIABLES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"];

/** Opens connections to any host, through the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for it. */
export function openAgent(options: Agent.Options = {}, env: Env = process.env): Agent | EnvHttpProxyAgent {
  if (!isProxied(env)) return new Agent(options);
  const named = {
    httpProxy: env["http_proxy"] ?? env["HTTP_PROXY"] ?? "",
    httpsProxy: env["https_proxy"] ?? env["HTTPS_PROXY"] ?? "",
    noProxy: [env["no_proxy"] ?? env["NO_PROXY"] ?? "", LOOPBACK].join(","),
  };
  return new EnvHttpProxyAgent({ ...options, ...named });
}

/** Opens connections to one host, as `openAgent` does. */
export function connectPool(origin: string, limits: Pool.Options, env: Env = process.env): Dispatcher {
  if (!isProxied(env) || isLoopback(new URL(origin).hostname)) return new Pool(origin, limits);
  const agent = openAgent({ ...limits, factory: (host, options) => new Pool(host, options) }, env);
  return agent.compose((dispatch) => (request, handler) => dispatch({ ...request, origin }, handler));
}

function isProxied(env: Env): boolean {
  return VARIABLES.some((name) => (env[name] ?? "") !== "");
}
