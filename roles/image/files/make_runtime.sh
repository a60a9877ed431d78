#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Build the programs of the SSH runtime from those of the system in which this script runs (the root of the reference image):
#
#   sh make_runtime.sh FOLDER VERSION
#
# FOLDER contains the list of applets. VERSION is what the file `version` says. The module ssh_runtime copies the result into a volume, and
# adds the scripts beside this file. The result needs nothing outside its own folder: every program names its loader and its
# libraries by their place in it. It holds for any architecture and any distribution, because the loader's name comes from the
# programs, and the libraries are those that ldd lists.
#
# What an image says to its own programs is not for these: run_own.sh, which starts them, takes its variables away, and the files
# that programs and libraries read by themselves are named by paths that no image can have.
set -eu

runtime=/opt/cluster-compute
applets=$(grep -v '^#' "$1/applets")
settings="/etc/nologin /etc/ssh/sshrc /etc/hosts.allow /etc/hosts.deny /etc/nsswitch.conf /etc/host.conf /etc/gai.conf /etc/ld.so.preload"
settings="$settings /etc/ld.so.cache /etc/krb5.conf /etc/gss/mech /usr/lib/ssl /etc/pki/tls /usr/lib/locale"

find_program() { # NAME: prints its path on any distribution; nothing if it is missing
    for folder in /usr/sbin /usr/bin /sbin /bin /usr/lib/openssh /usr/libexec/openssh /usr/lib/ssh; do
        if [ -x "$folder/$1" ]; then
            echo "$folder/$1"
            return
        fi
    done
}

libraries_of() { # FILE: the libraries and the loader that it is run with, one path a line
    ldd "$1" | sed -n -e 's/.*=> \(\/[^ ]*\).*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p'
}

add_program() { # NAME FOLDER [optional]: copy it and its libraries, and make it use only those
    source=$(find_program "$1")
    if [ -z "$source" ]; then
        [ "${3:-}" = optional ] && return
        echo "make_runtime: this system has no $1; add its package to the image" >&2
        exit 1
    fi
    target=$runtime/$2/$1
    install -m 0755 "$source" "$target"
    loader=$(patchelf --print-interpreter "$target")
    for library in $(libraries_of "$source") "$loader"; do
        install -m 0755 "$library" "$runtime/lib/"
    done
    patchelf --set-interpreter "$runtime/lib/${loader##*/}" "$target"
    patchelf --force-rpath --set-rpath "$runtime/lib" "$target"
}

add_launcher() { # NAME FOLDER: what the name starts; the script itself is added with the others
    ln -s "$runtime/bin/run_own" "$runtime/$2/$1"
}

forget_settings() { # FILE: it looks for the image's settings where nothing can be. The length of its texts has to stay
    script='s|dns \[!UNAVAIL=return] files|files dns                  |g' # the order of older libraries without an nsswitch.conf
    for path in $settings; do
        script="$script;s|$path|/proc/-${path#???????}|g"
    done
    LC_ALL=C sed -i "$script" "$1"
}

add_busybox() {
    install -m 0755 "$(find_program busybox)" "$runtime/bin/busybox"
    if ldd "$runtime/bin/busybox" >/dev/null 2>&1; then
        echo "make_runtime: this system's busybox is not static; add the static one to the image" >&2
        exit 1
    fi
    for applet in $applets; do
        ln -s busybox "$runtime/bin/$applet"
    done
}

rm -rf "$runtime"
mkdir -p "$runtime/bin" "$runtime/lib" "$runtime/libexec" "$runtime/unprivileged"
add_busybox
for program in ssh scp sftp ssh-keygen setpriv ping; do # ping without the capability of its file, with which it does not start
    add_program "$program" libexec
done
for program in ssh scp sftp ssh-keygen setpriv; do
    add_launcher "$program" bin
done
for program in ssh scp sftp ping; do # before those of the image
    add_launcher "$program" unprivileged
done
add_program sshd libexec
add_program sshd-session libexec optional # a program of its own since OpenSSH 9.8
add_program sshd-auth libexec optional    # and since 10.0
for file in "$runtime"/libexec/* "$runtime"/lib/* "$runtime/bin/busybox"; do
    forget_settings "$file"
done

# Keys made when the package was installed would be the same in every container.
rm -f /etc/ssh/ssh_host_*

# Test the programs: a runtime that does not run here does not run elsewhere.
"$runtime/libexec/ssh" -V
"$runtime/libexec/sshd" -V 2>/dev/null || "$runtime/libexec/sshd" -? 2>&1 | grep -q OpenSSH
"$runtime/libexec/setpriv" --version
echo "$2" >"$runtime/version" # the last file to be written, and the last to be copied into a volume
