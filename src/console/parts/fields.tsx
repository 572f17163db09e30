import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly needed?: boolean | undefined;
  readonly hint?: ComponentChildren;
  readonly problem?: string | undefined;
}

/** A labelled field with its hint and its problem. `children` gets the attributes that connect them. */
export function Field({
  label,
  needed = false,
  hint,
  problem,
  children,
}: FieldProps & {
  readonly children: (attributes: {
    readonly id: string;
    readonly "aria-describedby": string;
    readonly "aria-invalid": boolean;
    readonly required: boolean;
  }) => ComponentChildren;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
        {needed ? <Needed /> : null}
      </label>
      {children({
        id,
        "aria-describedby": hint === undefined ? `${id}-problem` : `${id}-hint ${id}-problem`,
        "aria-invalid": problem !== undefined,
        required: needed,
      })}
      {hint === undefined ? null : (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      <div class="problem" id={`${id}-problem`} aria-live="polite">
        {problem}
      </div>
    </div>
  );
}

type TextProps<E extends "input" | "textarea"> = FieldProps &
  Omit<JSX.IntrinsicElements[E], keyof FieldProps | "list" | "onInput" | "role" | "type"> & {
    readonly onText: (text: string) => void;
  };

/** A field with a line of text. Further attributes are those of the input. */
export function TextField({ label, needed, hint, problem, onText, ...own }: TextProps<"input">): JSX.Element {
  return (
    <Field {...{ label, needed, hint, problem }}>
      {(attributes) => (
        <input
          class="input"
          {...attributes}
          {...own}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** A field with a text of several lines. Further attributes are those of the textarea. */
export function TextArea({
  label,
  needed,
  hint,
  problem,
  onText,
  ...own
}: TextProps<"textarea">): JSX.Element {
  return (
    <Field {...{ label, needed, hint, problem }}>
      {(attributes) => (
        <textarea
          class="input"
          {...attributes}
          {...own}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

function Needed(): JSX.Element {
  return (
    <>
      <span class="needed" aria-hidden="true" />
      <span class="hidden-visually"> (required)</span>
    </>
  );
}

/** A choice of one, as cards. The arrow keys change it. */
export function Choices<T extends string>({
  legend,
  needed = false,
  name,
  value,
  options,
  onChange,
}: {
  readonly legend: string;
  readonly needed?: boolean;
  readonly name: string;
  readonly value: T;
  readonly options: readonly { readonly value: T; readonly label: string; readonly hint: string }[];
  readonly onChange: (value: T) => void;
}): JSX.Element {
  const id = useId();
  return (
    <fieldset>
      <legend class="label" style={{ marginBottom: "4px" }}>
        {legend}
        {needed ? <Needed /> : null}
      </legend>
      <div class="choices">
        {options.map((option) => (
          <label class="choice" key={option.value}>
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              aria-describedby={`${id}-${option.value}`}
              onChange={() => onChange(option.value)}
            />
            <span class="label">{option.label}</span>
            <span class="hint" id={`${id}-${option.value}`}>
              {option.hint}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** A choice of any number, as check boxes with an explanation each. */
export function Switches<T extends string>({
  legend,
  words,
  chosen,
  onChange,
}: {
  readonly legend: string;
  /** The options, with what each means. */
  readonly words: Readonly<Record<T, string>>;
  readonly chosen: readonly T[];
  readonly onChange: (chosen: readonly T[]) => void;
}): JSX.Element {
  const options = Object.keys(words) as T[]; // the keys of a record
  return (
    <fieldset class="stack tight">
      <legend class="label">{legend}</legend>
      {options.map((option) => (
        <label key={option} class="row switch">
          <input
            type="checkbox"
            checked={chosen.includes(option)}
            onChange={(event) => {
              const isOn = event.currentTarget.checked;
              onChange(isOn ? [...chosen, option] : chosen.filter((each) => each !== option));
            }}
          />
          <span>
            <strong>{option}</strong>: {words[option]}
          </span>
        </label>
      ))}
    </fieldset>
  );
}
