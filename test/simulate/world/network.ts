import type { Clock } from "../virtual/clock.ts";
import type { Random } from "../virtual/random.ts";
import type { FaultKind, Happening, StormKind } from "../history.ts";
import type { Delivery, Passage } from "./connection.ts";
import type { Answer, SentRequest, Service } from "./service.ts";

type Fault = Extract<Happening, { kind: "fault" }>;
type Storm = Extract<Happening, { kind: "storm" }>;

/** What lies between daemon and service, and breaks. */
export interface Network {
  /** The next request of that operation meets this. */
  expect(fault: Fault): void;
  begin(storm: Storm): void;
  end(storm: Storm): void;
  /** Nothing goes wrong from now on; what is on its way may still act late. */
  calm(): void;
  pass(request: SentRequest): Passage;
  /** Whether nobody listens. */
  isDown(): boolean;
  /** Whether the service works on no request, nor will act on one late: only then nothing more comes of those that were given up. */
  isQuiet(): boolean;
  /** Faults that a request met so far. */
  met(): number;
}

export interface NetworkOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly service: Service;
  /** Longest way of a request or an answer. */
  readonly slowMs: number;
  /** How long the client waits for an answer. */
  readonly timeoutMs: number;
  /** Whether the service knows by its key a request that it still works on. */
  readonly keys: boolean;
  readonly report: (line: () => string) => void;
}

const PAGE = "<html><body>One moment, please</body></html>";

/** Opens a network without faults. */
export function openNetwork({
  clock,
  random,
  service,
  slowMs,
  timeoutMs,
  keys,
  report,
}: NetworkOptions): Network {
  let expected: Fault[] = [];
  let storms: Storm[] = [];
  let met = 0;
  let working = 0;
  const wayMs = (): number => random.between(1, slowMs);
  const isDown = (): boolean => storms.some(({ storm }) => storm === "down");

  const faultOf = ({ operation, docId }: SentRequest): { kind: FaultKind; amount: number } | undefined => {
    const isMet = (kind: FaultKind): boolean => {
      if (isOfList(kind)) return operation === "list";
      if (kind === "400") return operation === "update";
      return kind !== "404-false" || docId !== undefined;
    };
    const next = expected.find((each) => each.operation === "any" || each.operation === operation);
    if (next !== undefined) {
      expected = expected.filter((each) => each !== next);
      // A create that a proxy doubles makes two resources and no lost answer: only a key of the request keeps it from that.
      const isDoubled = next.fault === "twice" && operation === "create" && !keys;
      return { kind: isDoubled ? "answer-lost" : next.fault, amount: next.amount };
    }
    for (const { storm, share, amount } of storms) {
      if (isFault(storm) && isMet(storm) && random.chance(share)) return { kind: storm, amount };
    }
    return undefined;
  };

  /** What is answered in place of the service; undefined where the service acts. */
  const alone = (kind: FaultKind, amount: number): Answer | undefined => {
    const no = (status: number, headers = {}): Answer =>
      service.answer(status, { success: false, message: `simulated ${kind}` }, headers);
    switch (kind) {
      case "500":
        return no(500);
      case "502":
        return { status: 502, headers: { "content-type": "text/html" }, text: PAGE };
      case "429":
        return no(429, { "retry-after": String(amount) });
      case "429-date":
        return no(429, { "retry-after": new Date(service.wallMs() + amount * 1000).toUTCString() });
      case "503":
        return no(503, { "retry-after": String(amount) });
      case "401":
        return no(401);
      case "400":
        return no(400);
      case "403":
        return no(403);
      case "404-page":
        return service.answer(404, { error: "no such backend" });
      case "404-false":
        return no(404);
      case "unsuccess":
        return no(200);
      case "page-alone":
        return { status: 200, headers: { "content-type": "text/html" }, text: PAGE };
      case "request-lost":
      case "answer-lost":
      case "answer-cut":
      case "answer-page":
      case "acted-500":
      case "answer-late":
      case "acts-late":
      case "twice":
      case "404-acted":
      case "list-short":
      case "list-reordered":
      case "list-stale":
        return undefined;
    }
  };

  const arrive = (request: SentRequest, fault: { kind: FaultKind; amount: number } | undefined): Delivery => {
    const afterMs = wayMs();
    const words = (): string => `${request.operation} ${request.docId ?? ""}`.trim();
    if (fault !== undefined) met += 1;
    if (isDown() || fault?.kind === "request-lost") {
      report(() => `${words()}: lost on its way`);
      return { kind: "broken", afterMs };
    }
    if (fault?.kind === "acts-late") {
      report(() => `${words()}: breaks, will act in ${Math.round(fault.amount)} ms`);
      working += 1;
      clock.at(clock.nowMs() + fault.amount, { alive: true }, () => {
        working -= 1;
        const { status } = service.serve(request, { late: true });
        report(() => `${words()}: acts late, ${status}`);
      });
      return { kind: "broken", afterMs };
    }
    const refusal = fault && alone(fault.kind, fault.amount);
    if (refusal !== undefined) {
      report(() => `${words()}: ${fault?.kind ?? ""} without acting`);
      return { kind: "answer", afterMs, answer: () => refusal };
    }
    const workMs = service.workMs(request);
    if (fault?.kind === "twice" && workMs === 0) service.serve(request);
    const manner = fault !== undefined && isOfList(fault.kind) ? { list: fault.kind } : {};
    const act = (isWork: boolean): Answer => {
      // Without keys nobody can know that it is worked on, once its client waits no longer.
      const late = isWork && !keys && clock.nowMs() - request.begunMs >= timeoutMs;
      const answer = service.serve(request, { ...manner, isWork, late });
      report(() => `${words()}: ${answer.status}${fault === undefined ? "" : `, then ${fault.kind}`}`);
      return answer;
    };
    if (workMs === 0) {
      const answer = act(false);
      return deliveryOf(fault?.kind, fault?.amount ?? 0, () => answer, afterMs);
    }
    report(() => `${words()}: worked on for ${Math.round(workMs)} ms`);
    let worked: Answer | undefined;
    working += 1;
    clock.at(clock.nowMs() + workMs, { alive: true }, () => {
      working -= 1;
      worked = act(true);
    });
    const later = (): Answer => worked ?? service.answer(500, "not done yet");
    return deliveryOf(fault?.kind, fault?.amount ?? 0, later, workMs + afterMs);
  };
  /** What the client sees of the answer of a service that acted. */
  const deliveryOf = (
    kind: FaultKind | undefined,
    amount: number,
    answer: () => Answer,
    afterMs: number,
  ): Delivery => {
    const whole = { kind: "answer", afterMs, answer } as const;
    if (kind === "answer-lost") return { kind: "broken", afterMs };
    if (kind === "answer-late") return { ...whole, afterMs: afterMs + timeoutMs + amount };
    if (kind === "answer-cut") {
      const half = ({ text, ...rest }: Answer): Answer => ({ ...rest, text: text.slice(0, text.length / 2) });
      return { ...whole, answer: () => half(answer()) };
    }
    if (kind === "answer-page") return { ...whole, answer: () => ({ ...answer(), status: 200, text: PAGE }) };
    if (kind === "acted-500") return { ...whole, answer: () => service.answer(500, "oops") };
    if (kind !== "404-acted") return whole;
    const gone = { success: false, message: "no such resource" };
    const denied = (): Answer => {
      const given = answer();
      return given.status < 300 ? service.answer(404, gone) : given;
    };
    return { ...whole, answer: denied };
  };

  const lag = (): void => {
    service.setLag(
      Math.max(0, ...storms.filter(({ storm }) => storm === "list-lags").map(({ amount }) => amount)),
    );
  };
  return {
    expect: (fault) => {
      expected.push(fault);
    },
    begin: (storm) => {
      storms.push(storm);
      lag();
    },
    end: (storm) => {
      storms = storms.filter((each) => each !== storm);
      lag();
    },
    calm: () => {
      expected = [];
      storms = [];
      lag();
    },
    pass: (request) => {
      if (isDown()) {
        met += 1;
        return { refused: true, outMs: wayMs(), arrive: () => ({ kind: "broken", afterMs: 0 }) };
      }
      const fault = faultOf(request);
      return { refused: false, outMs: wayMs(), arrive: () => arrive(request, fault) };
    },
    isDown,
    isQuiet: () => working === 0,
    met: () => met,
  };
}

function isOfList(kind: FaultKind): kind is "list-short" | "list-reordered" | "list-stale" {
  return kind === "list-short" || kind === "list-reordered" || kind === "list-stale";
}

function isFault(storm: StormKind): storm is Exclude<StormKind, "down" | "list-lags"> {
  return storm !== "down" && storm !== "list-lags";
}
