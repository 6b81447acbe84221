/** What the service manager of Windows asks for: that this service stops, or that it stops because the machine does. */
export type ServiceControl = 'stop' | 'shutdown';

/** The service manager of Windows. Rejects and throws ERR_SERVICE; `errno` is as of {@link HcnAddon}. */
export interface ServiceAddon {
  /**
   * Reports to the manager that this process is the service that it started; the service counts as starting until {@link serviceReport} reports more, for a
   * minute at most. Once in a process. `ERROR_FAILED_SERVICE_CONTROLLER_CONNECT`: the manager did not start this process.
   */
  serviceConnect(onControl: (control: ServiceControl) => void): Promise<void>;
  /**
   * @param number of one that is stopping: the seconds it may take at most; of one that has stopped: its exit status, other than 0 for a failure. The manager takes
   *   a process that ends without such a report for one that crashed.
   */
  serviceReport(state: 'running' | 'stopping' | 'stopped', number: number): void;
}
