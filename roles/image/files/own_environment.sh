#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The variables that an image or a user sets for programs of the image, sourced by what starts a program of the runtime: they change how the
# loader, the C library, OpenSSL or Kerberos work, and name files of the image that do not fit the runtime's libraries.
#
# shellcheck disable=SC2034 # those that source this file use the variable

image_settings="LD_ASSUME_KERNEL LD_AUDIT LD_BIND_NOT LD_BIND_NOW LD_DEBUG LD_DEBUG_OUTPUT LD_DYNAMIC_WEAK LD_HWCAP_MASK
LD_LIBRARY_PATH LD_ORIGIN_PATH LD_POINTER_GUARD LD_PREFER_MAP_32BIT_EXEC LD_PRELOAD LD_PROFILE LD_PROFILE_OUTPUT LD_SHOW_AUXV
LD_TRACE_LOADED_OBJECTS LD_TRACE_PRELINKING LD_USE_LOAD_BIAS LD_VERBOSE LD_WARN GLIBC_TUNABLES MALLOC_ARENA_MAX MALLOC_ARENA_TEST
MALLOC_CHECK_ MALLOC_MMAP_MAX_ MALLOC_MMAP_THRESHOLD_ MALLOC_PERTURB_ MALLOC_TOP_PAD_ MALLOC_TRACE MALLOC_TRIM_THRESHOLD_
GCONV_PATH GETCONF_DIR LOCPATH NLSPATH RES_OPTIONS LOCALDOMAIN HOSTALIASES RESOLV_HOST_CONF OPENSSL_CONF OPENSSL_CONF_INCLUDE
OPENSSL_ENGINES OPENSSL_MODULES OPENSSL_TRACE OPENSSL_ia32cap OPENSSL_armcap KRB5_CONFIG KRB5_TRACE GSS_MECH_CONFIG"

forget_image_settings() { # for the program that comes next, and all that it starts
    # shellcheck disable=SC2086 # a list of names
    unset $image_settings
}
