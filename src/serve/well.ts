/** Header of an answer on the status socket: whether all is well by it, which is the exit status of the command that asked. */
export const WELL_HEADER = 'pointsman-well';
