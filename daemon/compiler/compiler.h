/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_COMPILER_COMPILER_H
#define GPUQ_COMPILER_COMPILER_H

/*
 * What gpuqd-compiler is asked, and how
 *
 * A short-lived child of a worker, run as the worker's user. It turns one image
 * into one that cuModuleLoadData() accepts, and describes its kernels. The
 * worker never compiles and never parses what a client sent.
 *
 *     gpuqd-compiler --words FD
 *     gpuqd-compiler --target sm_90|cpu --format auto|source|opencl|ptx|cubin|fatbin|builtin
 *                    --out FD --libexec DIR [--in FD] [--length BYTES] [--name TEXT]
 *                    [--cache DIR] [--builtin-cache DIR] [--timeout SECONDS] [--cuda-driver]
 *                    [--device INDEX]
 *                    [--headers BYTES] [--libraries FOLDER:...] [--kernel NAME]...
 *                    [-- OPTION...]
 *
 *   --words    a memfd that holds all other words of the command line, each with a zero byte
 *              behind it. Workers use it: every user of the machine can read command lines.
 *   --target   of the device: sm_ and its compute capability (major * 10 + minor), or cpu
 *   --format   builtin: the kernels of DIR/kernels, and no --in
 *   --in       the client's sealed memfd, read from offset 0
 *   --length   bytes of the image; without it the file's size
 *   --out      an empty memfd of the worker's; the result is written from offset 0
 *   --libexec  the folder libexec/gpuq
 *   --name     what error messages call the source; "kernel.cu" without it
 *   --cache    a folder of this user's, made (0700) when missing; without it nothing is kept there
 *   --builtin-cache  a folder of gpuqd's that every user may read: built-in kernels are looked for there
 *              first. Only a process of gpuqd's user can store results there
 *   --timeout  CPU seconds for it and for each compiler it starts, the wall clock too; 0: none
 *   --cuda-driver  libcuda.so.1 may be opened, and a context made on device --device (0), to
 *              link PTX where nvJitLink is missing
 *   --headers  bytes behind the image of --in: header files that the source includes, each its
 *              name, a NUL, its text, a NUL (headers.h); needs --length
 *   --libraries  absolute paths of folders where NVRTC and nvJitLink are looked for first, then as
 *              the loader finds them and in folders of the CUDA Toolkit
 *   --kernel   a kernel that the client names, such as "ns::f<int>": source is compiled with
 *              this instance, and the result tells the symbol (compiled.h, named.h)
 *   OPTION     the client's, as options.h lists them
 *
 * The result of source or PTX for a GPU contains the twins of its kernels (batch.h) where
 * possible; the result does not list them. With --check it has none: its kernels compare their
 * accesses with the job's buffers (check.h).
 *
 * It exits 0 whenever it wrote a result, which may be an error: see compiled.h
 * for reading it. That its time was up, or that a compiler crashed, is a result too.
 * Another exit status, or a signal, is for the worker to report.
 *
 * It leads a process group of its own, where every compiler that it starts stays.
 * SIGTERM to it ends them all and removes its temporary files; SIGKILL to the
 * group ends them too, and the files go when a later one finds them a day old.
 *
 * PATH in its environment is where it looks for clang++, clang, cc and gcc; nothing else
 * of the environment is read but TMPDIR.
 */

#define COMPILER_PROGRAM "gpuqd-compiler"

/* The largest image read, in bytes. */
#define COMPILER_IMAGE_MAX (256u << 20)

/* The largest --words, in bytes: the options and names of a module come in a message of 4 MiB at most. */
#define COMPILER_WORDS_MAX (5u << 20)

#endif
