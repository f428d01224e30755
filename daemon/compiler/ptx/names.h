/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUQ_PTX_NAMES_H
#define GPUQ_PTX_NAMES_H

/*
 * Names
 *
 * What each name stands for while a module is read, in scopes within scopes. A name of an inner
 * scope hides the same name of an outer one.
 */

#include "compiler/ptx/module.h"

#define NAMES_SCOPES_MAX 64u /* within each other */

typedef enum NameKind {
        NAME_REGISTER, /* index */
        NAME_RANGE,    /* count registers "%r0", "%r1", ... */
        NAME_VARIABLE, /* index */
        NAME_FUNCTION, /* index */
        NAME_LABEL,    /* index; text is unique in its function */
} NameKind;

typedef struct Name {
        struct Name *next; /* in its bucket */
        struct Name *next_in_scope;
        PtxToken text;
        uint64_t hash;
        NameKind kind;
        PtxType type; /* of a range */
        uint32_t index;
        uint32_t count;
        unsigned depth; /* of its scope */
} Name;

typedef struct Names Names;

/** names_new() - @arena: for the names. Return: 0 or -ENOMEM. */
int names_new(Arena *arena, Names **ret_names);
/** names_free() - NULL is fine. Return: NULL. */
Names *names_free(Names *names);
DEFINE_CLEANUP(Names, names_free)

/** names_open() - begin a scope. Return: false if there are too many within each other. */
bool names_open(Names *names);
/** names_close() - end it and forget its names. */
void names_close(Names *names);
/** names_find() - the innermost of that name, or NULL. */
Name *names_find(const Names *names, PtxToken text);
/** names_find_range() - the innermost range that has this register. Return: NULL if there is none. */
Name *names_find_range(const Names *names, PtxToken text);
/** names_is_here() - whether it was declared in the current scope. */
bool names_is_here(const Names *names, const Name *name);
/**
 * names_add() - in the current scope, or in that of @beside if it is not NULL
 *
 * Return: the name, to be filled in, or NULL if there is no memory.
 */
Name *names_add(Names *names, PtxToken text, NameKind kind, const Name *beside);

#endif
