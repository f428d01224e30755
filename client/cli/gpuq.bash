# SPDX-License-Identifier: Apache-2.0
# bash completion for gpuq(1)

# The names of the built-in kernels.
_gpuq_builtins() {
        gpuq kernels --noheader 2>/dev/null | while read -r name _; do
                printf '%s\n' "$name"
        done
}

# The devices' numbers, from a daemon that answers at once.
_gpuq_devices() {
        timeout 2 gpuq status --json 2>/dev/null | grep -o '"index": *[0-9]*' | grep -o '[0-9]*$'
}

_gpuq_verb() {
        local i
        for ((i = 1; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in
                        --socket) ((i++)) ;;
                        -*) ;;
                        *) printf '%s' "${COMP_WORDS[i]}"; return ;;
                esac
        done
}

_gpuq_run_word() {
        local current=$1
        case $current in
                builtin:*)
                        COMPREPLY=($(compgen -P builtin: -W "$(_gpuq_builtins)" -- "${current#builtin:}")) ;;
                library:*)
                        COMPREPLY=($(compgen -P library: -W 'matmul fft fft2 fft3 ifft ifft2 ifft3 scan exclusive_scan sort sort_descending random_bits random_uniform random_normal' -- "${current#library:}")) ;;
                in:* | inout:* | out:*)
                        COMPREPLY=($(compgen -P "${current%%:*}:" -f -- "${current#*:}")) ;;
                *)
                        COMPREPLY=($(compgen -W 'builtin: library: in: inout: out: i32: u32: i64: u64: f32: f64: bool: null local:' -- "$current")
                                $(compgen -f -X '!*.@(cu|cl|ptx|cubin|fatbin)' -- "$current")
                                $(compgen -d -S / -- "$current"))
                        compopt -o nospace ;;
        esac
}

_gpuq() {
        local current previous verb options cur='' prev=''
        # A colon ends a word for readline; gpuq's arguments are full of them.
        if declare -F _get_comp_words_by_ref >/dev/null; then
                _get_comp_words_by_ref -n : cur prev
                current=$cur previous=$prev
        else
                current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
        fi
        local IFS=$' \t\n'
        COMPREPLY=()

        case $previous in
                --socket | --listen | -o | --output) COMPREPLY=($(compgen -f -- "$current")); return ;;
                -u | --user) COMPREPLY=($(compgen -u -- "$current")); return ;;
                --state) COMPREPLY=($(compgen -W 'done failed cancelled' -- "$current")); return ;;
                --by) COMPREPLY=($(compgen -W 'user group label slurm-job account' -- "$current")); return ;;
                --per) COMPREPLY=($(compgen -W 'day week month all' -- "$current")); return ;;
                -I | --include-path) COMPREPLY=($(compgen -d -- "$current")); return ;;
                --fmad | --ftz | --prec-div | --prec-sqrt) COMPREPLY=($(compgen -W 'true false' -- "$current")); return ;;
                --std) COMPREPLY=($(compgen -W 'c++11 c++14 c++17 c++20' -- "$current")); return ;;
                --grid | --block | --cluster | --shared | --priority | --timeout | --label | --device | --reason | --kernel | -j | --job | -S | --since | -E | --until | -D | --define | -d | --delay | -s | --seconds | -U | --undefine | --maxrregcount | --slurm-job)
                        return ;;
        esac

        verb=$(_gpuq_verb)
        options='--json --socket --help'
        case $verb in
                '') COMPREPLY=($(compgen -W 'status top kernels run queue explain trace cancel wait fetch history report metrics drain resume doctor --socket --help --version' -- "$current")); return ;;
                status) options+=' --verbose' ;;
                top) options='--delay --user --once --socket --help' ;;
                kernels) options+=' --noheader' ;;
                queue) options+=' --user --me --noheader' ;;
                cancel) options+=' --all --slurm-job' ;;
                fetch) options+=' --keep --quiet' ;;
                history) options+=' --user --job --since --until --state --kernel --label --device --slurm-job --csv --noheader' ;;
                report) options+=' --user --since --until --by --per --device --csv --noheader' ;;
                trace) options='--seconds --output --socket --help' ;;
                metrics) options='--listen --socket --help' ;;
                drain) options+=' --reason' ;;
                run) options+=' --grid --block --cluster --shared --cooperative --priority --timeout --label --device'
                        options+=' --define --undefine --std --use_fast_math --fmad --ftz --prec-div --prec-sqrt --device-int128 --include-path --maxrregcount --lineinfo --generate-line-info --device-debug --check --detach --quiet' ;;
        esac

        if [[ $current == -* ]]; then
                COMPREPLY=($(compgen -W "$options" -- "$current"))
        elif [[ $verb == run ]]; then
                _gpuq_run_word "$current"
                if declare -F __ltrim_colon_completions >/dev/null; then
                        __ltrim_colon_completions "$current"
                fi
        elif [[ $verb == cancel || $verb == wait || $verb == fetch || $verb == explain ]]; then
                COMPREPLY=($(compgen -W "$(timeout 2 gpuq queue --me --noheader 2>/dev/null | while read -r id _; do printf '%s ' "$id"; done)" -- "$current"))
        elif [[ $verb == drain || $verb == resume ]]; then
                COMPREPLY=($(compgen -W "$(_gpuq_devices)" -- "$current"))
        fi
}
complete -F _gpuq gpuq
