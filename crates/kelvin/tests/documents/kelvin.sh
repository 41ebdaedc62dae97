#!/bin/bash
# `kelvin` as the documents' reader types it, made small: a window takes a third of a second, two users drive one warehouse,
# and the servers are those of the test. What ran, and how it ended, is a line of $RAN.
short=400ms
timed= ramp= target= blocks= args=()
given=$*
# A search takes enough response times for its percentiles.
[[ $given != *--find-max* ]] || short=1s
# A page compares by the CPU of what it wrote down, and an A/B of runs without that ends with 4. What a server's processes use is
# read as often as its budget allows (observe::sample::pace): of ten looks a second some have it, too few for the window's mean.
[[ $given != *--print-spec* ]] || short=3s
for word in "$@"; do
    case $word in
    --runtime=*) word=--runtime=1 ;;
    --size=*) word=--size=1m ;;
    --filename=/data/*) word=--filename=f ;;
    /data | /temp) word=.$word && mkdir -p "$word" ;;
    postgres://*) word=$THEIR_POSTGRES ;;
    p99*) word=p50${word#p99} ;;
    esac
    case $before in
    -d | -T | --duration) word=$short timed=yes ;;
    --ramp-up) word=0s ramp=yes ;;
    -w | --warehouses | -s | -c | -u | --users)
        case $before$word in
        -w* | --w* | -s*) word=1 ;;
        *,*) word=1,2 ;;
        *) word=2 ;;
        esac
        ;;
    --scale) word=0.01 ;;
    --rate) [[ $2 == scan ]] && word=5 || word=100 ;;
    --sweep) word=users=1,2,3,4 ;;
    --rate-curve) word=40,80% ;;
    --repeat) word=2 ;;
    --max-runs) word=6 ;;
    --blocks) word=4 blocks=yes ;;
    --effect) blocks=yes ;;
    --disk) word=. ;;
    --target) target=yes ;;
    esac
    case $word in -s) [[ $1 == run || $1 == build ]] && before=$word || before= ;; *) before=$word ;; esac
    args+=("$word")
done
case $1 in
run)
    if [[ $2 == tproc-h ]]; then
        timed=yes ramp=yes
        [[ $target ]] || args+=(--target sqlite:h.db)
    fi
    if [[ $2 != io && $2 != *.toml ]]; then
        [[ $timed ]] || args+=(--duration $short)
        [[ $ramp ]] || args+=(--ramp-up 0s)
        [[ $given == *--accept-noise* ]] || args+=(--accept-noise)
        [[ $given != *--reset* && $given != *--snapshot* ]] || args+=(--idle-wait 0s)
        [[ $given == *--print-spec* ]] || args+=(--observe-interval 100ms)
        [[ $2 != tproc-c || $target ]] || args+=(--target sqlite:warehouse.db)
    fi
    [[ $given != *--until* || $given == *--max-runs* ]] || args+=(--max-runs 6)
    [[ $given != *--find-max* ]] || args+=(--resolution 50)
    ;;
ab)
    [[ $blocks ]] || args+=(--blocks 2)
    args+=(--no-control)
    [[ $given != *--effect* ]] || args+=(--pilot 4 --max-blocks 4)
    ;;
observe) args+=(--interval 100ms) ;;
vioperf)
    args+=(--working-set 2m --max-buffer-size 64k)
    [[ $timed ]] || args+=(--duration 1s)
    args=("${args[@]/%$short/1s}")
    ;;
serve)
    # Until the page has come.
    coproc "$KELVIN" "${args[@]}" --listen 127.0.0.1:0
    read -r address <&"${COPROC[0]}"
    exec 3<>"/dev/tcp/127.0.0.1/${address##*:}"
    printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    read -r -t 10 answer <&3
    kill -INT "$COPROC_PID"
    wait "$COPROC_PID"
    echo "$address $answer"
    [[ $answer == *" 200 "* ]]
    code=$?
    ;;
esac
if [[ -z $code ]]; then
    "$KELVIN" "${args[@]}"
    code=$?
fi
echo "$code $given" >>"$RAN"
exit $code
