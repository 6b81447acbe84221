import type { JSX } from 'preact';
import type { FamilyOverview, HealthReason, History, Overview, SourceOverview } from '../../../src/api.js';
import { bytes, duration, number } from '../format.js';
import { quantile, together } from '../latency.js';
import type { LiveState } from '../live.js';
import { Age, Clock, Dot, Facts, Section, State, Table } from '../parts.js';
import { printRoute } from '../route.js';

/** How the node is, at a glance. */
export function OverviewView({ state: { overview, history } }: { readonly state: LiveState }): JSX.Element {
  if (overview === null)
    return (
      <>
        <h1 class="unseen">Overview</h1>
        <p class="quiet">Asking the process…</p>
      </>
    );
  return (
    <>
      <Verdict overview={overview} />
      <Figures overview={overview} history={history} />
      <Families families={overview.families} />
      <Sources sources={overview.sources} />
      <Process overview={overview} />
    </>
  );
}

function Verdict({ overview: { health, startedAt } }: { readonly overview: Overview }): JSX.Element {
  const { healthy, nodeEligible, reasons } = health;
  const tone = !healthy ? 'bad' : nodeEligible === true ? 'good' : 'warn';
  const worst = reasons.find(({ severity }) => severity === 'bad');
  const since = healthy ? startedAt : (worst?.since ?? null);
  return (
    <section>
      <div class="page-head verdict">
        <Dot tone={tone} />
        <h1>{healthy ? 'Healthy' : 'Not healthy'}</h1>
        <p>
          {healthy ? 'The rules are in step with the cluster.' : 'The rules are not in step with the cluster.'}{' '}
          {eligible(nodeEligible)}
          {!healthy && since !== null && (
            <>
              {' '}
              Since <Clock at={since} />.
            </>
          )}
        </p>
      </div>
      {reasons.length > 0 && (
        <ul class="items reasons" aria-label="Why">
          {reasons.map((reason) => (
            <Reason key={`${reason.kind} ${reason.family ?? ''} ${reason.text}`} reason={reason} />
          ))}
        </ul>
      )}
    </section>
  );
}

function eligible(nodeEligible: boolean | null): string {
  if (nodeEligible === true) return 'Balancers may send here.';
  return nodeEligible === null
    ? 'Balancers are kept away: the node is not known.'
    : 'Balancers are kept away: the node is leaving.';
}

function Reason({ reason: { severity, kind, family, text, since } }: { readonly reason: HealthReason }): JSX.Element {
  const isOfServices = kind === 'set-aside' || kind === 'unplanned' || kind === 'conflict';
  return (
    <li class="reason">
      <Dot tone={severity === 'bad' ? 'bad' : 'warn'} />
      <p>
        <span class="unseen">{severity === 'bad' ? 'Bad: ' : 'Warning: '}</span>
        {family !== null && <span class="tag">{family}</span>} {text}{' '}
        {isOfServices && (
          <a href={printRoute({ view: 'services', parameters: { problems: 'only' } })}>Show the Services</a>
        )}
      </p>
      <span class="quiet number">
        {since !== null && (
          <>
            for <Age at={since} suffix="" />
          </>
        )}
      </span>
    </li>
  );
}

function Figures({
  overview,
  history,
}: {
  readonly overview: Overview;
  readonly history: History | null;
}): JSX.Element {
  const { families, services, memory, startedAt } = overview;
  const sum = (of: (family: FamilyOverview) => number): string =>
    number(families.reduce((total, each) => total + of(each), 0));
  const median = quantile(together(history?.latency.filter(({ kind }) => kind === 'change') ?? []), 0.5);
  return (
    <Facts
      look="figures"
      of={[
        ['Services', number(services)],
        ['Frontends', sum(({ frontends }) => frontends)],
        ['Endpoints', sum(({ endpoints }) => endpoints)],
        ['Change to kernel, median', median],
        ['Repairs', sum(({ repairs }) => repairs)],
        ['Memory', bytes(memory.residentBytes)],
        ['Running for', <Age at={startedAt} suffix="" />],
      ]}
    />
  );
}

const FAMILY_COLUMNS = [
  'Family',
  'State',
  '#Services',
  '#Frontends',
  '#Endpoints',
  '#Waiting',
  '#Set aside',
  '#Conflicts',
  '#Unplanned',
  '#Syncs',
  '#Failed',
  '#Repairs',
  'Last sync',
];

function Families({ families }: { readonly families: readonly FamilyOverview[] }): JSX.Element {
  return (
    <Section title="Address families">
      <Table label="Address families" columns={FAMILY_COLUMNS}>
        {families.map((family) => (
          <Family key={family.family} of={family} />
        ))}
      </Table>
    </Section>
  );
}

function Family({ of: family }: { readonly of: FamilyOverview }): JSX.Element {
  const { pendingFrontends, pendingMs, syncedAt } = family;
  const troubles = [family.setAside, family.conflicts, family.unplanned];
  return (
    <tr>
      <th scope="row">{family.family}</th>
      <td>
        <State tone={family.healthy ? 'good' : 'bad'}>{family.healthy ? 'in sync' : 'not in sync'}</State>
      </td>
      <td class="number">{number(family.services)}</td>
      <td class="number">{number(family.frontends)}</td>
      <td class="number">{number(family.endpoints)}</td>
      <td class="number">
        {number(pendingFrontends)}
        {pendingMs !== null && <span class="quiet"> for {duration(pendingMs / 1000)}</span>}
      </td>
      {troubles.map((count, index) => (
        <Faults key={index} count={count} />
      ))}
      <td class="number">{number(family.syncs)}</td>
      <Faults count={family.failures} />
      <td class="number">{number(family.repairs)}</td>
      <td>{syncedAt === null ? 'never' : <Age at={syncedAt} />}</td>
    </tr>
  );
}

/** Nothing is what it should be. */
function Faults({ count }: { readonly count: number }): JSX.Element {
  return <td class={`number ${count > 0 ? 'warn-text' : ''}`}>{number(count)}</td>;
}

function Sources({ sources }: { readonly sources: readonly SourceOverview[] }): JSX.Element {
  return (
    <Section title="Sources" aside="where Services and endpoints come from">
      <Table label="Sources" columns={['Source', 'State', 'Last heard of', 'Failures since the start']}>
        {sources.map(({ source, synced, lastEventAt, failures }) => (
          <tr key={source}>
            <th scope="row" class="name">
              {source}
            </th>
            <td>
              <State tone={synced ? 'good' : 'warn'}>{synced ? 'read' : 'not read yet'}</State>
            </td>
            <td>{lastEventAt === null ? 'never' : <Age at={lastEventAt} />}</td>
            <td>
              {failures.length === 0 ? (
                <span class="quiet">none</span>
              ) : (
                failures.map(({ kind, count }) => `${number(count)} × ${kind}`).join(', ')
              )}
            </td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Process({ overview }: { readonly overview: Overview }): JSX.Element {
  const { release, version, mode, node, pid, startedAt, memory } = overview;
  return (
    <Section title="Process">
      <div class="columns">
        <Facts
          of={[
            ['Node', <span class="name">{node}</span>],
            ['Mode', mode],
            ['Started', <Clock at={startedAt} />],
            ['Process', <code>{pid}</code>],
          ]}
        />
        <Facts
          of={[
            ['Release', release],
            ['Speaks for Kubernetes', version],
            ['Memory, resident', bytes(memory.residentBytes)],
            ['Heap, and beside it', `${bytes(memory.heapBytes)}, ${bytes(memory.externalBytes)}`],
          ]}
        />
      </div>
    </Section>
  );
}
