/** Formats a share from 0 to 1, rounded down to a tenth of a percent: only a share of 1 is `100 %`. */
export const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`;
