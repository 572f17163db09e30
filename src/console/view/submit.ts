import { useState } from "preact/hooks";

/** A form that sends what is in it: whether it does so now, and why it failed last. */
export interface Submission {
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly submit: (event: Event) => void;
}

/** Runs `send` when the form is submitted. */
export function useSubmit(send: () => Promise<void>): Submission {
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  const run = async (): Promise<void> => {
    setIsBusy(true);
    setError(undefined);
    try {
      await send();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return {
    isBusy,
    error,
    submit: (event) => {
      event.preventDefault();
      void run();
    },
  };
}
