/* A program's own header that has the name of one of the package's. */
#ifndef OWN_BATCHED_H
#define OWN_BATCHED_H
enum { OWN_BATCHES = 3 };
#endif
