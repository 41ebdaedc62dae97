#!/usr/bin/env tclsh
# A sequence of runs with more users each time, as an autopilot does it.
puts "SETTING CONFIGURATION"
dbset db pg
dbset bm TPC-C
giset commandline keepalive_margin 1200
diset connection pg_host 127.0.0.1 ; diset connection pg_port 5432
diset tpcc pg_driver timed
diset tpcc pg_rampup 2
set vu_list {}
for {set z 4} {$z <= [expr {[numberOfCPUs] + 8}]} {incr z 4} { lappend vu_list $z }
if {![info exists ::env(PROFILEID)]} { set profile 0 } else { set profile $::env(PROFILEID) }
if {$profile > 0 || "x" in {a b}} {
    jobs profileid $profile
} elseif {$profile == 0} {
    puts "no profile"
}
foreach z $vu_list {
    loadscript
    vuset vu $z
    vuset logtotemp 1
    vucreate
    tcstart
    set jobid [vurun]
    vudestroy
    tcstop
    puts "ended $jobid with $z"
}
set of [open $::env(TMP)/pg_tprocc w]
puts $of $jobid
close $of
set if [open $::env(TMP)/pg_tprocc r]
set id [lindex [split [gets $if] =] 1]
close $if
job $id result
