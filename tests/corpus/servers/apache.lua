-- Answers everything, once its body has come.
function handle(r)
    r.headers_out["X-Served"] = "yes"
    r:requestbody()
    if r.uri == "/204" or r.uri == "/304" then
        r.status = tonumber(r.uri:sub(2))
    else
        r:puts("served\n")
    end
    return apache2.OK
end
