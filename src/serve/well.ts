/** Header of an answer on the status socket: whether all is well by it, which is the exit status of the command that asked. */
export const WELL_HEADER = 'pointsman-well';
/** Value of the header `Server` of every answer on the status socket, by which commands know that it is ours. */
export const SERVER_NAME = 'pointsman';
