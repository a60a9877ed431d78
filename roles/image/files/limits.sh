#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The limits of a session, kept in each of its containers without any help from outside. Sourced by init.sh, which is PID 1 and
# runs keep_limits in a subshell. The file /etc/cluster-compute/limits is read again and again, because it may change:
#
#   lifetime SECONDS BEGAN    the session ends SECONDS after BEGAN, in seconds since the epoch
#   idle SECONDS              the session ends when all of its containers have been idle for SECONDS
#   command WHEN              the session ends when the command of main1 has ended: 1 always, 2 if it failed, 3 if it succeeded
#
# A container is idle while no login by SSH lasts, no browser is connected to an app, its programs use less than a twentieth of
# a CPU, and its GPUs compute for less than a twentieth of the time. run/quiet holds the seconds
# since it was last in use or paused. main1 ends when every sub is idle as well, a sub when main1 is gone. When the command has
# ended, main1 writes into the file run/over of each other container, by a login of the user, to whom that file belongs.
#
# shellcheck disable=SC2154 # init.sh and life.sh set config, runtime, home, uid, gid, sshd, connections and clock

read_limits() { # sets lifetime, began, idle and ending, 0 where there is no limit, and the seconds between two checks
    lifetime=0 began=0 idle=0 ending=0 interval=5
    while read -r name first second; do
        case $name:$first$second in
            *:*[!0-9]* | *:) ;;
            lifetime:*) lifetime=$first began=${second:-0} ;;
            idle:*) idle=$first ;;
            command:*) ending=$first ;;
        esac
    done 2>/dev/null <"$config/limits"
    # The login by which containers ask each other takes a tenth of a second of CPU, which must not count as use.
    if [ "$idle" -gt 0 ] && [ "$idle" -lt 60 ]; then
        interval=3
    fi
    if [ "$lifetime" -gt 0 ] && [ "$lifetime" -lt 60 ]; then
        interval=1
    fi
}

warn() { # TEXT: shows it in every terminal, and in the log. A terminal that nothing reads must not hold this up
    say "$1"
    for terminal in /dev/pts/[0-9]*; do
        if [ -c "$terminal" ]; then
            printf '\r\n*** %s ***\r\n' "$1" >"$terminal" &
        fi
    done
}

warn_before() { # LEFT LIMIT WHY: warns five minutes and one minute before the end, or at the half and the quarter of a short limit
    first=$(($2 / 2)) last=$(($2 / 4))
    [ "$first" -lt 300 ] || first=300
    [ "$last" -lt 60 ] || last=60
    stage=0
    [ "$1" -gt "$first" ] || stage=1
    [ "$1" -gt "$last" ] || stage=2
    [ "$stage" -le "$warned" ] || warn "This session ends in $1 s: $3. Save your work."
    warned=$stage
}

check_lifetime() { # a clock that was ahead when the session began makes it no longer: it began at the first look, then
    [ "$lifetime" -gt 0 ] || return 0
    now=$("$runtime/bin/date" +%s)
    if [ "$began" -le "$((now + 60))" ]; then
        since=$began
    elif [ "$ahead" != "$began" ] || [ "$since" -gt "$((now + 60))" ]; then
        ahead=$began since=$now
    fi
    left=$((since + lifetime - now))
    if [ "$left" -le 0 ]; then
        warn "The lifetime of this session, $lifetime s, is over."
        kill -USR1 1
        return
    fi
    warn_before "$left" "$lifetime" "its lifetime of $lifetime s is over then"
}

read_cpu() { # sets cpu: the microseconds of CPU time that this container has used (cgroup v2, then v1); empty if unknown
    cpu=''
    if [ -r /sys/fs/cgroup/cpu.stat ]; then
        read -r _ cpu </sys/fs/cgroup/cpu.stat
    elif [ -r /sys/fs/cgroup/cpuacct/cpuacct.usage ]; then
        read -r cpu </sys/fs/cgroup/cpuacct/cpuacct.usage
        cpu=$((cpu / 1000))
    fi
}

ask_driver() { # asks for the percentage of each NVIDIA GPU of this container. Nothing waits for a driver that does not answer
    asked=yes ask_driver_at=$((clock + idle + 1000)) # about a hundred times in the idle timeout, but not for each check
    (
        unset LD_LIBRARY_PATH LD_PRELOAD
        "$runtime/bin/busybox" timeout 10 "$runtime/bin/setpriv" --reuid "$uid" --regid "$gid" --init-groups -- \
            "$nvidia_smi" --query-gpu=utilization.gpu --format=csv,noheader,nounits >"$config/run/gpus" 2>/dev/null
    ) &
    driver=$!
}

read_percents() { # sets percents, of the GPUs of this container: what the driver has answered, and what the kernel shows of AMD's
    percents=''
    for file in "$config/run/gpus" /dev/dri/renderD*; do
        case $file in
            /dev/dri/*) file=/sys/class/drm/${file##*/}/device/gpu_busy_percent ;;
        esac
        while read -r percent; do
            percents="$percents $percent"
        done 2>/dev/null <"$file"
    done
}

gpus_are_used() { # as far as it is known
    [ "$idle" -gt 0 ] || return 1
    read_percents
    if [ -x "$nvidia_smi" ] && [ "$clock" -ge "$ask_driver_at" ] && ! is_alive "$driver"; then
        ask_driver
    fi
    for percent in $percents; do
        case $percent in
            *[!0-9]*) ;; # [N/A]
            *) [ "$percent" -lt 5 ] || return 0 ;;
        esac
    done
    return 1
}

cpu_is_used() { # at least 500 of the 10000 microseconds in a hundredth of a second. The driver's answer takes CPU time of its own
    [ -z "$asked_before" ] || return 1
    [ -z "$cpu" ] || [ -z "$cpu_before" ] || [ $((cpu - cpu_before)) -gt $(((clock - clock_before) * 500)) ]
}

is_in_use() { # since the last call: a login that lasts, a connection to an app, or programs that compute
    cpu_before=$cpu clock_before=$clock asked_before=$asked lasting='' asked=''
    read_cpu
    read_clock
    look
    for pid in $connections; do
        case $logins in
            *" $pid "*) [ "$pid" = "$sshd" ] || lasting=$pid ;;
        esac
    done
    logins=" $connections "
    [ -n "$lasting" ] || apps_are_used || cpu_is_used || gpus_are_used
}

# Where NVIDIA's runtime puts it.
nvidia_smi=/usr/bin/nvidia-smi
# Seconds for the answer of another container, whose login shell may hang.
patience=60

log_in() { # HOST SCRIPT: runs it in another container, as the user. For a subshell
    export HOME="$home"
    set -- -F "$config/ssh_config" -n -o BatchMode=yes -o ConnectTimeout=5 -o ServerAliveInterval=5 "$1" "$2"
    "$runtime/bin/busybox" timeout "$patience" \
        "$runtime/bin/setpriv" --reuid "$uid" --regid "$gid" --init-groups -- "$runtime/bin/ssh" "$@" 2>/dev/null
}

ask_quiet() { # HOST: sets answer: its idle seconds, 0 if it does not know them, or empty if it cannot be reached
    answer=$(log_in "$1" "cat $config/run/quiet; echo" && echo reached)
    case $answer in
        *reached) ;;
        *) answer='' && return ;;
    esac
    # shellcheck disable=SC2086 # words
    set -- 0 $answer
    while [ "$#" -gt 2 ]; do shift; done
    case $1 in
        *[!0-9]*) answer=0 ;;
        *) answer=$1 ;;
    esac
}

# Containers that are asked at the same time: their logins take memory and processes of this one.
together=4

subs_are_idle() { # sets ask_at, before which no sub has to be asked again, if one is in use. A sub that is gone is not in use
    # shellcheck disable=SC2046 # words
    set -- $(echo "$BACKENDAI_CLUSTER_HOSTS" | "$runtime/bin/tr" , ' ')
    while [ "$#" -gt 0 ]; do
        asked=$(($# < together ? $# : together)) answered=0
        answers=$(
            count=0
            for host; do
                [ "$((count += 1))" -le "$together" ] || break
                { answer=''; [ "$host" = "$BACKENDAI_CLUSTER_HOST" ] || ask_quiet "$host"; echo "${answer:-gone}"; } &
            done
            wait
        )
        check_lifetime # containers that hang take a minute
        for answer in $answers; do
            answered=$((answered + 1))
            if [ "$answer" != gone ] && [ "$answer" -lt "$idle" ]; then
                ask_at=$((clock + (idle - answer) * 100))
                return 1
            fi
        done
        [ "$answered" -eq "$asked" ] || return 1 # a process could not begin
        shift "$asked"
    done
}

tell_others() { # that the session is over. The next command of anyone removes a container that hangs, and does not hear it
    # shellcheck disable=SC2046 # words
    set -- $(echo "$BACKENDAI_CLUSTER_HOSTS" | "$runtime/bin/tr" , ' ')
    while [ "$#" -gt 0 ]; do
        (
            count=0
            for host; do
                [ "$((count += 1))" -le "$together" ] || break
                [ "$host" = "$BACKENDAI_CLUSTER_HOST" ] || log_in "$host" "echo over >$config/run/over" &
            done
            wait
        )
        shift "$(($# < together ? $# : together))"
    done
}

end_with_command() { # CODE: on main1, ends the session if it is to end with such an end of its command
    [ "$BACKENDAI_CLUSTER_HOST" = main1 ] || return 0
    read_limits
    case $ending:$1 in
        1:* | 3:0) ;;
        0:* | 2:0 | 3:*) return ;;
    esac
    say "the command has ended, and the session ends with it"
    tell_others
    kill -ALRM 1
}

check_over() {
    if [ "$ending" -gt 0 ] && [ -s "$config/run/over" ]; then
        say "the command of main1 has ended, and the session ends with it"
        kill -ALRM 1
    fi
}

main1_is_gone() { # sets ask_at. One failure may be a moment of load
    ask_quiet main1
    if [ -n "$answer" ]; then
        failures=0
        ask_at=$((clock + (idle / 4 + 2 * BACKENDAI_CLUSTER_SIZE) * 100))
        return 1
    fi
    failures=$((failures + 1))
    ask_at=$((clock + 300))
    [ "$failures" -gt 1 ]
}

session_is_idle() {
    if [ "$BACKENDAI_CLUSTER_ROLE" = main ]; then
        subs_are_idle
    else
        main1_is_gone
    fi
}

was_paused() { # the last look was long ago. The idle time starts again, because containers are unpaused one after another
    [ $((clock - clock_before)) -gt $((interval * 500)) ]
}

check_idle() {
    if is_in_use || was_paused || [ "$idle" -eq 0 ] || [ -z "$used_at" ]; then
        used_at=$clock ask_at=0 failures=0
    fi
    quiet=$(((clock - used_at) / 100))
    echo "$quiet" >"$config/run/quiet"
    [ "$idle" -gt 0 ] && [ "$quiet" -ge "$idle" ] && [ "$clock" -ge "$ask_at" ] || return 0
    if session_is_idle; then
        warn "This session was idle for $quiet s and ends."
        kill -USR2 1
    fi
    # The CPU time of the question is no use of the session.
    read_cpu
    read_clock
}

keep_limits() {
    { printf '' >"$config/run/over" && "$runtime/bin/chown" "$uid" "$config/run/over"; } 2>/dev/null
    warned=0 ahead='' used_at='' logins='' cpu='' clock=0 asked='' ask_driver_at=0 driver=none
    while :; do
        read_limits
        check_lifetime
        check_over
        check_idle
        "$runtime/bin/sleep" "$interval"
    done
}
