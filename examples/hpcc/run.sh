#!/bin/sh
# Copyright: (c) 2026, the cluster.compute authors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Run HPC Challenge on every slot of the session, print its summary, and fail unless all of its verifications passed.
set -eu
cd "$(mktemp -d)"
cp /opt/hpcc/hpccinf.txt .
mpirun hpcc
grep -E '^(Success|CommWorldProcs|HPL_N|HPL_Tflops|PTRANS_GBs|MPIRandomAccess_GUPs|MPIFFT_Gflops)=' hpccoutf.txt
grep -E 'Found .* errors in|tests completed and (passed|failed)|Node\(s\) with error' hpccoutf.txt
grep -qx 'Success=1' hpccoutf.txt
! grep -qE 'FAILED|Found [1-9].* errors|[1-9][0-9]* tests completed and failed|with error [1-9]' hpccoutf.txt
