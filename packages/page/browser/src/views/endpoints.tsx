import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Endpoint, EndpointGroup, ServiceDetail } from '../../../../../src/serve/service-answers.js';
import { ask, messageOf } from '../ask.js';
import { number } from '../format.js';
import { Dot, Section, Table, Trouble } from '../parts.js';
import { printRoute } from '../route.js';

interface Properties {
  readonly service: ServiceDetail;
  /** Another one when the Service may have changed. */
  readonly version: number;
}

/** Which endpoints are used, which are not, and why. */
export function EndpointGroups({ service, version }: Properties): JSX.Element {
  return (
    <>
      {service.endpoints.map((group) => (
        <Group key={groupKey(group)} serviceKey={service.key} group={group} version={version} />
      ))}
    </>
  );
}

function groupKey({ family, port, protocol, policy }: EndpointGroup): string {
  return [family, port, protocol, policy].join(' ');
}

interface GroupProperties {
  readonly serviceKey: string;
  readonly group: EndpointGroup;
  readonly version: number;
}

function Group({ serviceKey, group, version }: GroupProperties): JSX.Element {
  const { family, port, protocol, policy, applies, used, total, reasons } = group;
  const { rows, more, error } = useMore(serviceKey, group, version);
  const title = `Endpoints of ${port === '' ? protocol : port}, ${family}`;
  return (
    <Section title={title} note={`policy ${policy}, ${applies}`}>
      <p>
        <Share used={used} total={total} /> {number(used)} of {number(total)} used
        {reasons.map(({ reason, count }) => (
          <span key={reason} class="quiet">
            {'; '}
            {number(count)} {reason}
          </span>
        ))}
      </p>
      {rows.length > 0 && (
        <Table label={`${title}, policy ${policy}`} columns={['Endpoint', 'Pod', 'Node', 'Conditions', 'Here']}>
          {rows.map((endpoint, index) => (
            <EndpointRow key={`${endpoint.endpoint} ${index}`} of={endpoint} />
          ))}
        </Table>
      )}
      {error !== null && <Trouble>{error}</Trouble>}
      {rows.length < total && (
        <p>
          <button type="button" class="button plain" onClick={more}>
            {number(Math.min(STEP, total - rows.length))} more of {number(total - rows.length)}
          </button>
        </p>
      )}
    </Section>
  );
}

const STEP = 500;

/** The first rows, and those that were asked for; when the Service changes they are asked for again by whoever wants them. */
function useMore(
  key: string,
  group: EndpointGroup,
  version: number,
): { readonly rows: readonly Endpoint[]; readonly more: () => void; readonly error: string | null } {
  const [further, setFurther] = useState<readonly Endpoint[]>([]);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    setFurther([]);
    setError(null);
  }, [version]);
  const rows = [...group.rows, ...further];
  const more = (): void => {
    const { family, port, protocol, policy } = group;
    const query = { key, family, port, protocol, policy, offset: String(rows.length), limit: String(STEP) };
    ask('api/endpoints', query, AbortSignal.timeout(30_000)).then(
      (page) => {
        setFurther([...further, ...page.rows]);
      },
      (caught: unknown) => {
        setError(messageOf(caught));
      },
    );
  };
  return { rows, more, error };
}

/** How many of all, drawn; the words beside it say the same. */
function Share({ used, total }: { readonly used: number; readonly total: number }): JSX.Element {
  return (
    <svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="6" class="bar-ground" />
      <rect width={total === 0 ? 0 : (100 * used) / total} height="6" class="bar-fill" />
    </svg>
  );
}

function EndpointRow({ of: endpoint }: { readonly of: Endpoint }): JSX.Element {
  const { node, pod, conditions } = endpoint;
  return (
    <tr>
      <th scope="row">
        <code>{endpoint.endpoint}</code>
      </th>
      <td class="name">{pod ?? <span class="quiet">none</span>}</td>
      <td class="name">
        {node === null ? (
          <span class="quiet">none</span>
        ) : (
          <a
            href={printRoute({ view: 'services', parameters: { q: `node:${node}` } })}
            title="Services with endpoints there"
          >
            {node}
          </a>
        )}
      </td>
      <td class="whole">{conditions.length === 0 ? <span class="quiet">none</span> : conditions.join(', ')}</td>
      <td>
        <Use of={endpoint} />
      </td>
    </tr>
  );
}

/** Whether it is used, and why not. */
export function Use({ of: { used, reason } }: { readonly of: Endpoint }): JSX.Element {
  return (
    <span class="state">
      <Dot tone={used ? 'good' : 'none'} />
      <span class={used ? undefined : 'quiet'}>
        {used ? 'used' : 'not used'}
        {reason !== null && `: ${reason}`}
      </span>
    </span>
  );
}
