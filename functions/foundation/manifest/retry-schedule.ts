/**
 * Waits after the first, second, … failed attempt, in seconds: 8 attempts over 27.6 hours. A stage can have another schedule
 * (`deliveries.retrySchedule`).
 */
export const DEFAULT_SCHEDULE: readonly number[] = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
