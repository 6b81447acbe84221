import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ExplainAnswer, ExplainStep } from '../../../src/api.js';
import { useAnswer } from '../ask.js';
import { counted } from '../format.js';
import { useServicesVersion } from '../live.js';
import { Dot, Trouble, type Tone } from '../parts.js';
import { go, type Route } from '../route.js';
import { Use } from './endpoints.js';

/** An answer reads the kernel's whole table in some modes, so that a Service that changes all the time is not asked about all the time. */
const AGAIN_MS = 5000;

/** What becomes of a packet, asked and drawn. */
export function ExplainView({ route: { parameters } }: { readonly route: Route }): JSX.Element {
  const to = parameters['to'] ?? '';
  const from = parameters['from'] ?? '';
  const [times, setTimes] = useState(0);
  const service = useRef<string | null>(null);
  const changes = useServicesVersion(
    ({ keys, membership }) => membership || service.current === null || keys.includes(service.current),
  );
  const version = usePaced(changes);
  const { answer, error } = useAnswer('api/explain', to === '' ? null : { to, from }, version + times);
  service.current = answer?.service ?? null;
  // Nobody tells when the kernel has taken what it waits for.
  const isPending = answer?.steps.some(({ id }) => id === 'pending') === true;
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(() => {
      setTimes((before) => before + 1);
    }, AGAIN_MS);
    return () => {
      clearInterval(timer);
    };
  }, [isPending]);
  return (
    <>
      <div class="page-head">
        <h1>Explain</h1>
        <p>what becomes of the first packet of a connection on this node, and why</p>
      </div>
      <Question
        to={to}
        from={from}
        onAsk={(question) => {
          go({ view: 'explain', parameters: question });
          setTimes((before) => before + 1);
        }}
      />
      <div aria-live="polite">
        {error !== null && <Trouble>{error}</Trouble>}
        {answer !== null && error === null && <Answer of={answer} />}
      </div>
    </>
  );
}

/** A number that grows, as it was at most so long ago. */
function usePaced(version: number): number {
  const [shown, setShown] = useState(version);
  const changedAt = useRef(-Infinity);
  useEffect(() => {
    if (version === shown) return;
    const wait = Math.max(0, changedAt.current + AGAIN_MS - performance.now());
    const timer = setTimeout(() => {
      changedAt.current = performance.now();
      setShown(version);
    }, wait);
    return () => {
      clearTimeout(timer);
    };
  }, [version, shown]);
  return shown;
}

interface QuestionProperties {
  readonly to: string;
  readonly from: string;
  readonly onAsk: (question: { readonly to: string; readonly from: string }) => void;
}

function Question({ to, from, onAsk }: QuestionProperties): JSX.Element {
  const [typedTo, setTo] = useState(to);
  const [typedFrom, setFrom] = useState(from);
  useEffect(() => {
    setTo(to);
    setFrom(from);
  }, [to, from]);
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk({ to: typedTo.trim(), from: typedFrom.trim() });
      }}
    >
      <Field
        id="from"
        label="From"
        hint="external, node, an address, a pod, an interface, or address%interface"
        value={typedFrom}
        onInput={setFrom}
        list="senders"
        placeholder="external"
      />
      <datalist id="senders">
        <option value="external" />
        <option value="node" />
      </datalist>
      <Field
        id="to"
        label="To"
        hint="address:port/protocol; IPv6 addresses in brackets"
        value={typedTo}
        onInput={setTo}
        required
        placeholder="10.96.0.1:443/TCP"
      />
      <button type="submit" class="button">
        Explain
      </button>
    </form>
  );
}

interface FieldProperties {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly placeholder: string;
  readonly list?: string;
  readonly required?: boolean;
}

function Field({ id, label, hint, onInput, ...rest }: FieldProperties): JSX.Element {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...rest}
        id={id}
        class="mono"
        type="text"
        spellcheck={false}
        autocomplete="off"
        aria-describedby={`${id}-hint`}
        onInput={({ currentTarget }) => {
          onInput(currentTarget.value);
        }}
      />
      <span id={`${id}-hint`} class="hint quiet">
        {hint}
      </span>
    </div>
  );
}

const OUTCOMES: Readonly<Record<ExplainAnswer['outcome'], readonly [word: string, tone: Tone]>> = {
  forward: ['Forwarded', 'good'],
  reject: ['Rejected', 'bad'],
  drop: ['Dropped', 'bad'],
  none: ['Left alone', 'none'],
};

function Answer({ of: { outcome, headline, steps, text } }: { readonly of: ExplainAnswer }): JSX.Element {
  const [word, tone] = OUTCOMES[outcome];
  return (
    <section class="answer">
      <div class="verdict">
        <Dot tone={tone} />
        <h2>{word}</h2>
      </div>
      <p class="headline name">{headline}</p>
      <ol class="track">
        {steps.map((step) => (
          <Step key={step.id} of={step} />
        ))}
        <li class={`stop terminus ${tone}`}>
          <h3>{word}</h3>
        </li>
      </ol>
      <details>
        <summary>The same as text</summary>
        <pre tabIndex={0}>{text}</pre>
      </details>
    </section>
  );
}

const WORDS: Readonly<Record<ExplainStep['outcome'], string>> = {
  'goes-on': 'goes on',
  ends: 'decides',
  info: '',
  warning: 'look here',
};

function Step({ of: { title, outcome, lines, endpoints, moreEndpoints } }: { readonly of: ExplainStep }): JSX.Element {
  const word = WORDS[outcome];
  return (
    <li class={`stop ${outcome}`}>
      <h3>
        {title}
        {word !== '' && <span class="unseen">: {word}</span>}
      </h3>
      <div class="name">
        {lines.map((line, index) => (
          <p key={index}>{line}</p>
        ))}
        {endpoints.length > 0 && (
          <ul class="branches" aria-label={counted(endpoints.length + moreEndpoints, 'endpoint')}>
            {endpoints.map((endpoint, index) => (
              <li key={index} class={endpoint.used ? 'used' : 'unused'}>
                <code>{endpoint.endpoint}</code>
                <span class="quiet name">{endpoint.node ?? 'no node'}</span>
                <Use of={endpoint} />
              </li>
            ))}
          </ul>
        )}
        {moreEndpoints > 0 && <p class="quiet">and {counted(moreEndpoints, 'endpoint')} more</p>}
      </div>
    </li>
  );
}
