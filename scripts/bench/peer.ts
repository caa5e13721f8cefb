export async function peer(): Promise<void> {}
