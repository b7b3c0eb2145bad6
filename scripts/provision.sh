#!/usr/bin/env bash
# Prepares a machine for fabriclab: Debian packages and a virtual environment with all it imports.
# The one script for make, CI and the Vagrantfile. Debian 12 and 13, Ubuntu 22.04 and 24.04, on
# x86-64 and arm64. Idempotent: when nothing changed it ends at once.
#
#   FABRICLAB_VENV     where the virtual environment is made (default: .venv beside setup.cfg)
#   FABRICLAB_PYTHON   the interpreter to use (default: the system's, when it is 3.11 or newer)
#
# It installs packages that are missing and never upgrades one that is there, starts no service and
# restarts none (Debian's Open vSwitch package starts its own where systemd runs), and reads nothing
# from standard input. Run as root when Debian packages are missing.
set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${FABRICLAB_VENV:-$repo/.venv}
[[ $venv == /* ]] || venv=$repo/$venv
stamp=$venv/.provisioned
log=$venv.log
inputs=(scripts/provision.sh scripts/constraints.txt setup.cfg pyproject.toml)

system_packages=(
    openvswitch-switch mininet              # switches, namespaces
    clang libbpf-dev libc6-dev              # the data plane's eBPF program and its loader
    iproute2 iputils-ping iperf3 ethtool    # ordinary traffic through the fabric
    tshark                                  # reading captures
    gcc make                                # wheels that are not published for this machine
)

# For `fabriclab kernel build`, the kernel of the virtual clock. Runs with the live clock do without,
# so what cannot be had (Ubuntu has other versions of the source) is said and nothing more.
kernel_packages=(flex bison bc xz-utils linux-source-6.12)

ryu=ryu==4.34
# Ryu's setup needs an entry of setuptools that 68 removed, and pbr. 67.8 has it and runs on all
# Pythons that we support.
ryu_builders=(setuptools==67.8.0 wheel==0.45.1 pbr==7.1.3)

say() { printf 'provision: %s\n' "$*"; }

fail() {
    printf 'provision: %s\n' "$@" >&2
    exit 1
}

# Runs a command up to three times; its output goes to the log, whose end is shown when all failed.
attempt() {
    local what=$1 pause
    shift
    say "$what"
    for pause in 5 20 0; do
        printf '\n== %s\n' "$what" >>"$log"
        if "$@" >>"$log" 2>&1 </dev/null; then return; fi
        if ((pause)); then
            say "$what failed; again in $pause s"
            sleep "$pause"
        fi
    done
    tail -n 15 "$log" >&2
    printf 'provision: %s failed three times; the end of %s is above\n' "$what" "$log" >&2
    return 1
}

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The interpreter to build on, empty when there is none yet.
find_python() {
    local candidate
    for candidate in "${FABRICLAB_PYTHON:-}" /usr/bin/python3 /usr/bin/python3.{14,13,12,11}; do
        if [[ -x $candidate ]] && is_recent "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

# Where the system's Python is older than 3.11 (Ubuntu 22.04), its archive has 3.11 beside it.
python_packages() {
    if [[ -n ${FABRICLAB_PYTHON:-} ]]; then return; fi
    if [[ ! -x /usr/bin/python3 ]] || is_recent /usr/bin/python3; then
        echo python3-venv python3-dev
    else
        echo python3.11 python3.11-venv python3.11-dev
    fi
}

missing_packages() {
    # shellcheck disable=SC2046 # names without blanks
    missing_of "${system_packages[@]}" $(python_packages)
}

# Those of the named packages that are not installed.
missing_of() {
    local name
    local -A there=()
    while read -r name; do there[${name%%:*}]=1; done < <(
        dpkg-query --show --showformat '${db:Status-Status} ${binary:Package}\n' 2>/dev/null |
            sed -n 's/^installed //p'
    )
    for name in "$@"; do
        [[ -n ${there[$name]:-} ]] || echo "$name"
    done
}

fingerprint() {
    local python
    python=$(find_python)
    {
        cd "$repo" && sha256sum "${inputs[@]}"
        echo "$repo" "$python"
        [[ -z $python ]] || version_of "$python"
    } | sha256sum | cut -d ' ' -f 1
}

is_current() {
    [[ -f $stamp && -x $venv/bin/python && -x $venv/bin/fabriclab ]] &&
        [[ $(<"$stamp") == "$(fingerprint)" && -z $(missing_packages) ]]
}

check_machine() {
    local name=unknown
    # shellcheck source=/dev/null
    [[ -r /etc/os-release ]] && name=$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        fail "this machine ($name) has no apt; fabriclab is set up on Debian 12 or 13 and on" \
            "Ubuntu 22.04 or 24.04. Elsewhere use the Vagrantfile: vagrant up"
    fi
    case $name in
        'debian 12' | 'debian 13' | 'ubuntu 22.04' | 'ubuntu 24.04') ;;
        *) say "note: $name is not among the tested systems (Debian 12, 13, Ubuntu 22.04, 24.04)" ;;
    esac
    case $(uname -m) in
        x86_64 | aarch64) ;;
        *) say "note: $(uname -m) is not among the tested processors (x86-64, arm64)" ;;
    esac
}

apt_lists_read=''

read_apt_lists() {
    [[ -z $apt_lists_read ]] || return 0
    apt_lists_read=yes
    attempt 'reading the lists of Debian packages' apt-get -q update ||
        say 'going on with the lists that this machine has'
}

apt_install() {
    read_apt_lists
    attempt "installing $*" \
        env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
        apt-get -q -y --no-install-recommends --no-upgrade \
        -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Options::=--force-confold install "$@"
}

# Only what is missing is named to apt: naming a present package would upgrade it, and an upgrade
# restarts its service.
install_packages() {
    local missing
    for _ in 1 2; do # a second round when the first shows that the system's Python is too old
        mapfile -t missing < <(missing_packages)
        ((${#missing[@]})) || return 0
        if [[ ${missing[*]} == *python3.11* ]]; then
            say "fabriclab needs Python 3.11 or newer, this is $(/usr/bin/python3 --version);" \
                'taking 3.11 beside it'
        fi
        apt_install "${missing[@]}" ||
            fail "Debian packages could not be installed: ${missing[*]}" \
                'check the network and the package sources (Ubuntu: universe), then run this again'
    done
    mapfile -t missing < <(missing_packages)
    ((${#missing[@]} == 0)) || fail "apt reported success, but these are not there: ${missing[*]}"
}

# User-Mode-Linux exists for x86-64 only.
install_kernel_packages() {
    local name missing known=()
    [[ $(uname -m) == x86_64 ]] || return 0
    missing=$(missing_of "${kernel_packages[@]}")
    [[ -n $missing ]] || return 0
    ((EUID)) || read_apt_lists
    for name in $missing; do
        if apt-cache pkgnames "$name" | grep -Fx "$name" >/dev/null; then
            known+=("$name")
        else
            say "note: this system has no package $name; fabriclab kernel build says what it takes"
        fi
    done
    ((${#known[@]})) || return 0
    if ((EUID)); then
        say "note: to build the virtual clock's kernel: sudo apt install ${known[*]}"
    else
        apt_install "${known[@]}" || say "going on without ${known[*]}"
    fi
}

require_python() {
    python=$(find_python)
    [[ -n $python ]] && return
    fail "fabriclab needs Python 3.11 or newer; /usr/bin/python3 is $(
        /usr/bin/python3 --version 2>&1 || echo absent
    )" 'set FABRICLAB_PYTHON to a newer interpreter, or use Debian 12+, Ubuntu 22.04+'
}

# A virtual environment of our own, without the system's Python packages but for Mininet: what else
# lies there is built for one interpreter and of any version. Mininet is pure Python.
build_environment() {
    local site source=/usr/lib/python3/dist-packages/mininet
    if ! "$venv/bin/python" -c 'import pip' 2>/dev/null ||
        [[ $(version_of "$venv/bin/python") != "$(version_of "$python")" ]]; then
        attempt "making the virtual environment on $("$python" --version)" \
            "$python" -m venv --clear "$venv" || fail "no virtual environment could be made in $venv"
    fi
    [[ -d $source ]] || fail "the mininet package has no Python modules in $source"
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    ln -sfn "$source" "$site/mininet"
}

version_of() { "$1" -c 'import sys; print(sys.version)'; }

pip_install() {
    "$venv/bin/python" -m pip install --quiet --constraint "$repo/scripts/constraints.txt" "$@"
}

# setuptools stays in the environment: Mininet imports distutils, which Python 3.12 dropped and
# setuptools still carries.
install_fabriclab() {
    attempt 'installing fabriclab and what it needs' \
        pip_install setuptools --editable "${repo}[test,dev]" ||
        fail 'Python packages could not be installed: check the network, then run this again'
}

build_ryu() {
    local work=$1
    "$python" -m venv --clear "$work/venv" &&
        "$work/venv/bin/python" -m pip install --quiet "${ryu_builders[@]}" &&
        "$work/venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation \
            --wheel-dir "$work" "$ryu"
}

install_controller() {
    local work
    if "$venv/bin/python" -m pip show --quiet "${ryu%%=*}" 2>/dev/null && check_controller; then
        return
    fi
    work=$(mktemp -d)
    if attempt 'building Ryu' build_ryu "$work" &&
        attempt 'installing Ryu' pip_install "$work"/ryu-*.whl && check_controller; then
        rm -rf "$work"
        return
    fi
    rm -rf "$work"
    say 'Ryu does not work on this Python; the controller uses os-ken, its maintained fork'
    "$venv/bin/python" -m pip uninstall --quiet --yes ryu >>"$log" 2>&1 || true
    attempt 'installing os-ken' pip_install "${repo}[os-ken]" ||
        fail 'neither Ryu nor os-ken could be installed: check the network, then run this again'
    check_controller || fail "the controller does not start with os-ken; see the end of $log"
}

check_controller() { (cd / && "$venv/bin/python" -W ignore -c 'import controller.sdn') >>"$log" 2>&1; }

# Under sudo the checkout's owner keeps the use of the environment.
give_back() {
    ((EUID == 0)) || return 0
    chown -R -h --reference="$repo" "$venv" "$venv.lock" "$log" "$repo"/*.egg-info 2>/dev/null || true
}

check_rights() {
    local missing folder
    missing=$(missing_packages)
    if [[ -n $missing ]] && ((EUID)); then
        fail "these Debian packages are missing: ${missing//$'\n'/ }" \
            'installing them needs root: run sudo make ..., or sudo scripts/provision.sh'
    fi
    folder=$(dirname "$venv")
    mkdir -p "$folder" 2>/dev/null || true
    for folder in "$folder" "$repo"; do
        [[ -w $folder ]] || fail "$(id -un) may not write to $folder; run this as its owner or as root"
    done
}

main() {
    if is_current; then return; fi
    check_machine
    check_rights
    exec 9>"$venv.lock"
    flock 9 2>/dev/null || true # two calls at once: the second waits, then finds all done
    if is_current; then return; fi
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore LC_ALL=C.UTF-8
    : >"$log"
    rm -f "$stamp"
    install_packages
    install_kernel_packages
    require_python
    build_environment
    install_fabriclab
    install_controller
    fingerprint >"$stamp"
    give_back
    say "done: $venv"
}

main
