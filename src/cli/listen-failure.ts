import { serviceSubject, type ProxyEvent } from '../base/events.js';

/** Events of Services whose health checks cannot be answered on a node. */
export function listenFailure(node: string, service: string, port: number, error: Error): ProxyEvent {
  return {
    type: 'Warning',
    reason: 'FailedToStartServiceHealthcheck',
    action: 'Listen',
    regarding: serviceSubject(service),
    related: null,
    note: `node ${node} cannot answer health checks of ${service} on port ${port}: ${error.message}`,
  };
}
