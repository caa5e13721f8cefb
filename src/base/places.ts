/** Where the service and its clients on the same machine find each other when nobody says otherwise. */

export const DEFAULT_PORT = "3000";
export const DEFAULT_DATA_DIR = "./errand-data";

/** In the data folder: the test key that the first start made. */
export const TEST_KEY_FILE = "test-key";
