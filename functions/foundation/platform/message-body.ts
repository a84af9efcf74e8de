/**
 * Serializes a message for SQS, which refuses U+FFFE and U+FFFF: the only characters that JSON.stringify does not escape
 * and that SQS does not accept. The reader gets the same text.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export const messageBody = (message: object): string =>
  JSON.stringify(message).replaceAll("\ufffe", "\\ufffe").replaceAll("\uffff", "\\uffff");
