// Loaded into every test process: what it has reported is written when it is forced to exit. Else the names of the last
// tests of a file are lost where whoever reads them is slow; a failure still fails the file, but the counts are too low.
process.stdout._handle?.setBlocking?.(true);
