proc fatal {message} { puts "FATAL: $message"; exit 1 }
if {![info exists ::env(TMP)]} { fatal "TMP is not set" }
set id [expr {[info exists ::env(PROFILEID)] ? $::env(PROFILEID) : 0}]
if {![string is integer -strict $id] || $id < 0} { fatal "PROFILEID must be a number" }
dbset db maria
diset connection {maria_host} {127.0.0.1}
diset tpcc maria_user "root"
diset tpcc maria_storage_engine {innodb}
set vu [numberOfCPUs]
set warehouses [numberOfWHs]
if { $warehouses >= 200 } { set vu 32 }
diset tpcc maria_count_ware $warehouses
diset tpcc maria_num_vu [expr {min($vu, 8)}]
buildschema
checkschema
vuset vu $vu ; loadscript ; vucreate
set job [string map {"Benchmark Run jobid=" ""} [vurun]]
puts "job $job of profile $id"
job $job timing
vudestroy
deleteschema
exit
