import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Conflict, Frontend, ServiceDetail } from '../../../../../src/serve/service-answers.js';
import { ask, messageOf, useAnswer } from '../ask.js';
import { clockTime, counted, duration, number } from '../format.js';
import { useServicesVersion } from '../live.js';
import { Age, Codes, Dot, Facts, Section, Table, Trouble } from '../parts.js';
import { printRoute } from '../route.js';
import { EndpointGroups } from './endpoints.js';
import { TrafficSection, useTrafficVersion } from './traffic.js';

/** The pane; it can have the focus. */
export const SERVICE_ID = 'service';

interface Properties {
  /** `namespace/name`. */
  readonly serviceKey: string;
  readonly onClose: () => void;
}

/** One Service whole. */
export function ServicePane({ serviceKey, onClose }: Properties): JSX.Element {
  const version = useServicesVersion(({ keys }) => keys.includes(serviceKey));
  const [counted, setCounted] = useState(false);
  const looks = useTrafficVersion(counted);
  // Both only grow, so that their sum is another one whenever one of them is.
  const { answer, error } = useAnswer('api/service', { key: serviceKey }, version + looks);
  const isCounted = answer !== null && answer.traffic !== null;
  useEffect(() => {
    setCounted(isCounted);
  }, [isCounted]);
  const [namespace = '', name = ''] = serviceKey.split('/', 2);
  const pane = useRef<HTMLElement>(null);
  useEffect(() => {
    if (pane.current !== null) pane.current.scrollTop = 0;
  }, []);
  return (
    <section class="service-pane" id={SERVICE_ID} aria-label={`Service ${serviceKey}`} tabIndex={0} ref={pane}>
      <header class="service-head">
        <div>
          <p class="quiet name">{namespace}</p>
          <h2 class="name">{name}</h2>
        </div>
        <button type="button" class="button plain" onClick={onClose}>
          Close
        </button>
      </header>
      {error !== null && <Trouble>{error}</Trouble>}
      {answer === null ? (
        error === null && <p class="quiet">Asking the process…</p>
      ) : (
        <Service of={answer} version={version} />
      )}
    </section>
  );
}

function Service({ of: service, version }: { readonly of: ServiceDetail; readonly version: number }): JSX.Element {
  const { unplanned, nothing, limitations, leftOut, portCount, slices, sliceCount } = service;
  return (
    <>
      {unplanned.map(({ family, reason }) => (
        <Trouble key={family}>
          Cannot be planned for {family}, and stays as it was: {reason}
        </Trouble>
      ))}
      {limitations.map((text) => (
        <Trouble key={text}>{text}</Trouble>
      ))}
      {leftOut.map((text) => (
        <Trouble key={text}>Left out: {text}</Trouble>
      ))}
      {nothing !== null && <p>{nothing}</p>}
      <Object of={service} />
      {service.frontends.length > 0 && <Frontends service={service} version={version} />}
      <EndpointGroups service={service} version={version} />
      {portCount > GROUPED_PORTS && (
        <p class="quiet">
          Endpoints of the first {GROUPED_PORTS} ports of {number(portCount)}
        </p>
      )}
      <TrafficSection of={service} />
      {slices.length > 0 && (
        <Section
          title="EndpointSlices"
          note={
            slices.length < sliceCount
              ? `the first ${number(slices.length)} of ${number(sliceCount)}`
              : number(sliceCount)
          }
        >
          <Table label="EndpointSlices" columns={['Name', 'Family', '#Endpoints', 'Ports']}>
            {slices.map(({ name, family, endpoints, ports }) => (
              <tr key={name}>
                <td class="name">{name}</td>
                <td>{family}</td>
                <td class="number">{number(endpoints)}</td>
                <td>
                  <Codes of={ports} />
                </td>
              </tr>
            ))}
          </Table>
        </Section>
      )}
    </>
  );
}

/** What the object says. */
function Object({ of: service }: { readonly of: ServiceDetail }): JSX.Element {
  const {
    type,
    clusterIPs,
    externalIPs,
    loadBalancer,
    sourceRanges,
    policies,
    affinitySeconds,
    healthCheck,
    createdAt,
    ports,
  } = service;
  const codes = (of: readonly string[]): ComponentChildren => of.length > 0 && <Codes of={of} />;
  return (
    <Facts
      look="facts wide-facts"
      of={[
        ['Type', type],
        ['Ports', codes(ports.map(printPort))],
        ['Cluster IPs', codes(clusterIPs)],
        ['External IPs', codes(externalIPs)],
        [
          'Load balancer',
          codes(
            loadBalancer.map(({ address, mode }) => (mode === 'VIP' ? address : `${address} (sends to node ports)`)),
          ),
        ],
        ['Source ranges', codes(sourceRanges)],
        ['Policies', `${policies.internal} for internal traffic, ${policies.external} for external`],
        ['Affinity', affinitySeconds === null ? 'none' : `by client address, for ${duration(affinitySeconds)}`],
        [
          'Health check',
          healthCheck && `port ${healthCheck.port}, ${counted(healthCheck.localEndpoints, 'endpoint')} on this node`,
        ],
        ['Created', createdAt && <Created at={createdAt} />],
      ]}
    />
  );
}

function Created({ at }: { readonly at: string }): JSX.Element {
  return (
    <>
      {clockTime(at)}{' '}
      <span class="quiet">
        (<Age at={at} />)
      </span>
    </>
  );
}

function printPort({ name, port, nodePort, protocol }: ServiceDetail['ports'][number]): string {
  return `${name === '' ? '' : `${name} `}${port}${nodePort === 0 ? '' : `:${nodePort}`}/${protocol}`;
}

/** Of so many ports endpoints come with a Service. */
const GROUPED_PORTS = 20;
/** How many frontends are asked for at a time. */
const STEP = 500;

function Frontends({ service, version }: { readonly service: ServiceDetail; readonly version: number }): JSX.Element {
  const { key, frontendCount } = service;
  const [further, setFurther] = useState<readonly Frontend[]>([]);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    setFurther([]);
    setError(null);
  }, [version]);
  const frontends = [...service.frontends, ...further];
  const left = frontendCount - frontends.length;
  const more = (): void => {
    const query = { key, offset: String(frontends.length), limit: String(STEP) };
    ask('api/frontends', query, AbortSignal.timeout(30_000)).then(
      (page) => {
        setFurther([...further, ...page.rows]);
      },
      (caught: unknown) => {
        setError(messageOf(caught));
      },
    );
  };
  return (
    <Section title="Frontends" note="addresses and ports that this node forwards">
      <Table label="Frontends" columns={['Frontend', 'Kind', '#Endpoints', 'Masquerade', 'Without endpoints', '']}>
        {frontends.map((frontend) => (
          <FrontendRows key={`${frontend.key} ${frontend.port}`} of={frontend} />
        ))}
      </Table>
      {error !== null && <Trouble>{error}</Trouble>}
      {left > 0 && (
        <p>
          <button type="button" class="button plain" onClick={more}>
            {number(Math.min(STEP, left))} more of {number(left)}
          </button>
        </p>
      )}
    </Section>
  );
}

function FrontendRows({ of: frontend }: { readonly of: Frontend }): JSX.Element {
  const { key, kind, port, endpoints, localEndpoints, masquerade, whenEmpty, explain } = frontend;
  return (
    <>
      <tr class={endpoints === 0 ? 'leads-nowhere' : undefined}>
        <th scope="row">
          <code>{key}</code> {port !== '' && <span class="quiet">{port}</span>}
        </th>
        <td>{kind}</td>
        <td class="number">
          {number(endpoints)}
          {localEndpoints !== null && <span class="quiet">, {number(localEndpoints)} from outside</span>}
        </td>
        <td>{masquerade}</td>
        <td>{whenEmpty === 'reject' ? 'rejected' : 'dropped'}</td>
        <td>
          {explain !== null && (
            <a href={printRoute({ view: 'explain', parameters: { to: explain } })} aria-label={`Explain ${key}`}>
              Explain
            </a>
          )}
        </td>
      </tr>
      <FrontendTroubles of={frontend} />
    </>
  );
}

function FrontendTroubles({ of: { key, lostTo, claimedBy, quarantined } }: { readonly of: Frontend }): JSX.Element {
  const troubles: readonly (readonly [id: string, text: ComponentChildren])[] = [
    ...(lostTo === null
      ? []
      : [
          [
            'lost',
            <>
              belongs to <Other conflict={lostTo} />: {lostTo.reason}
            </>,
          ] as const,
        ]),
    ...claimedBy.map(
      (each) =>
        [
          each.servicePort,
          <>
            is claimed by <Other conflict={each} />, too: {each.reason}
          </>,
        ] as const,
    ),
    ...(quarantined === null
      ? []
      : [
          [
            'quarantined',
            <>
              is quarantined for <Age at={quarantined.since} suffix="" />: the kernel rejects it: {quarantined.reason}
            </>,
          ] as const,
        ]),
  ];
  return (
    <>
      {troubles.map(([id, text]) => (
        <tr key={`${key} ${id}`} class="note">
          <td colSpan={6}>
            <Dot tone={id === 'lost' || id === 'quarantined' ? 'bad' : 'warn'} /> {text}
          </td>
        </tr>
      ))}
    </>
  );
}

function Other({ conflict: { service, servicePort } }: { readonly conflict: Conflict }): JSX.Element {
  return (
    <a class="name" href={printRoute({ view: 'services', item: service })}>
      {servicePort}
    </a>
  );
}
