/* Marks exported symbols; all others are hidden. */
#ifndef TRACEDB_PUBLIC_H
#define TRACEDB_PUBLIC_H

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

#endif
