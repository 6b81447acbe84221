import type { JSX } from 'preact';
import type { Failure, History, Repair, Sync } from '../../../src/api.js';
import { bytes, counted, milliseconds, number } from '../format.js';
import { LatencyFigure } from '../latency.js';
import { identity, type LiveState } from '../live.js';
import { Age, Clock, Section, State, Table, useNewcomers } from '../parts.js';

/** What was sent to the kernel, how long that took, and what had to be put right. */
export function HistoryView({ state: { history, skippedSyncs } }: { readonly state: LiveState }): JSX.Element {
  return (
    <>
      <div class="page-head">
        <h1>History</h1>
        <p>since the start of the process</p>
      </div>
      {history === null ? (
        <p class="quiet">Asking the process…</p>
      ) : (
        <Loaded history={history} skipped={skippedSyncs} />
      )}
    </>
  );
}

function Loaded({ history, skipped }: { readonly history: History; readonly skipped: number }): JSX.Element {
  const { syncs, slowest, repairs, failures, latency } = history;
  return (
    <>
      <div class="columns figures-row">
        {(['change', 'sync'] as const).map((kind) => (
          <LatencyFigure key={kind} kind={kind} histograms={latency.filter((each) => each.kind === kind)} />
        ))}
      </div>
      <Repairs repairs={repairs} />
      {failures.length > 0 && <Failures failures={failures} />}
      <Section
        title="Syncs"
        note={
          skipped === 0
            ? 'latest first'
            : `latest first; ${number(skipped)} more are not listed, as they happened too fast`
        }
      >
        <Syncs label="Syncs" syncs={syncs} />
      </Section>
      <Section title="Slowest syncs" note="without full comparisons">
        <Syncs label="Slowest syncs" syncs={slowest} />
      </Section>
    </>
  );
}

function Syncs({ label, syncs }: { readonly label: string; readonly syncs: readonly Sync[] }): JSX.Element {
  const isNew = useNewcomers(syncs.map(identity));
  if (syncs.length === 0) return <p class="quiet">None yet.</p>;
  const longest = Math.max(...syncs.map(({ syncMs }) => syncMs));
  return (
    <Table label={label} columns={['Ended', 'Family', '#Took', '', 'What changed', '#Operations', '#Sent']}>
      {syncs.map((sync) => (
        <SyncRow key={identity(sync)} sync={sync} longest={longest} isNew={isNew(identity(sync))} />
      ))}
    </Table>
  );
}

interface SyncProperties {
  readonly sync: Sync;
  /** Milliseconds of the longest beside it. */
  readonly longest: number;
  readonly isNew: boolean;
}

function SyncRow({ sync, longest, isNew }: SyncProperties): JSX.Element {
  const { endedAt, family, syncMs, sinceChangeMs, full, elementOperations, ruleOperations, transactions } = sync;
  const operations = [
    ...(elementOperations > 0 ? [counted(elementOperations, 'element')] : []),
    ...(ruleOperations > 0 ? [counted(ruleOperations, 'rule')] : []),
  ];
  return (
    <tr class={isNew ? 'arrived' : undefined}>
      <td class="when">
        <Clock at={endedAt} />
      </td>
      <td>{family}</td>
      <td class="number" title={`${milliseconds(sinceChangeMs)} from the first change in it`}>
        {milliseconds(syncMs)}
      </td>
      <td class="bar-cell" aria-hidden="true">
        <Bar share={logShare(syncMs, longest)} />
      </td>
      <td class="wide what">
        {full && <span class="tag">compared everything</span>} <Changed sync={sync} />
      </td>
      <td class="number">{operations.length === 0 ? <span class="quiet">none</span> : operations.join(', ')}</td>
      <td class="number">{transactions === 0 ? <span class="quiet">nothing</span> : bytes(sync.bytes)}</td>
    </tr>
  );
}

/** Service ports, some of them by name. */
function Changed({ sync: { servicePorts, frontends } }: { readonly sync: Sync }): JSX.Element {
  if (frontends === 0) return <span class="quiet">no frontend</span>;
  const more = frontends - servicePorts.length;
  return (
    <span class="name">
      {servicePorts.join(', ')}
      {more > 0 && (
        <span class="quiet">
          {servicePorts.length === 0 ? counted(frontends, 'frontend') : ` and ${number(more)} more`}
        </span>
      )}
    </span>
  );
}

function Bar({ share }: { readonly share: number }): JSX.Element {
  return (
    <svg viewBox="0 0 100 6" preserveAspectRatio="none">
      <rect width="100" height="6" class="bar-ground" />
      <rect width={Math.max(1, share * 100)} height="6" class="bar-fill" />
    </svg>
  );
}

/** Syncs differ by powers of ten: from 0.1 ms on, each takes the same room. */
function logShare(ms: number, longest: number): number {
  const steps = (of: number): number => Math.log10(Math.max(1, of / 0.1));
  return steps(ms) / Math.max(1, steps(longest));
}

function Repairs({ repairs }: { readonly repairs: readonly Repair[] }): JSX.Element {
  const isNew = useNewcomers(repairs.map(identity));
  return (
    <Section title="Repairs" note="external changes to our rules, repaired">
      {repairs.length === 0 ? (
        <p class="quiet">None: no other process has changed the rules.</p>
      ) : (
        <ul class="items">
          {repairs.map((repair) => (
            <RepairItem key={identity(repair)} repair={repair} isNew={isNew(identity(repair))} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function RepairItem({ repair, isNew }: { readonly repair: Repair; readonly isNew: boolean }): JSX.Element {
  const { at, family, process, differences, seconds, texts } = repair;
  const more = differences - texts.length;
  return (
    <li class={isNew ? 'arrived' : undefined}>
      <p>
        <Clock at={at} /> <span class="tag">{family}</span>{' '}
        {process === null ? (
          <span>by an unknown process</span>
        ) : (
          <>
            by <code>{process}</code>
          </>
        )}
        <span class="quiet">
          , {counted(differences, 'difference')}
          {seconds === null ? '' : `, repaired in ${milliseconds(seconds * 1000)}`}
        </span>
      </p>
      <ul class="texts">
        {texts.map((text, index) => (
          <li key={index}>
            <code>{text}</code>
          </li>
        ))}
        {more > 0 && <li class="quiet">and {number(more)} more</li>}
      </ul>
    </li>
  );
}

function Failures({ failures }: { readonly failures: readonly Failure[] }): JSX.Element {
  return (
    <Section title="Failed syncs" note="the last of each family">
      <Table label="Failed syncs" columns={['Family', '#Since the start', 'Last', 'What went wrong', 'Now']}>
        {failures.map(({ family, count, at, text, over }) => (
          <tr key={family}>
            <th scope="row">{family}</th>
            <td class="number">{number(count)}</td>
            <td>
              <Age at={at} />
            </td>
            <td class="wide name">{text}</td>
            <td>
              <State tone={over ? 'good' : 'bad'}>{over ? 'synced since' : 'goes on'}</State>
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}
